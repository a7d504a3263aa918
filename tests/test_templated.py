"""The templated requests are what their script writes, and have the shape that they are for."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from datasets.templated import PLAN, main, templated_rows
from datasets.training.quickstart import quickstart_requests
from datasets.training.tokenizer import CONTEXT

PATH = Path(__file__).resolve().parent.parent / "datasets" / "templated.jsonl"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in PATH.read_text("utf-8").splitlines()]


def test_the_file_is_what_the_script_writes(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert capsys.readouterr().out == PATH.read_text("utf-8")
    assert PATH.stat().st_size < 300_000


def test_rows_are_well_formed(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == len({row["custom_id"] for row in rows}) == 512
    assert len({row["body"]["max_tokens"] for row in rows}) > 5
    counts = Counter(row["category"] for row in rows)
    assert sorted(counts.values()) == sorted(number for _, number, _ in PLAN)
    for row in rows:
        assert list(row) == ["custom_id", "method", "url", "category", "body"]
        assert list(row["body"]) == ["model", "messages", "max_tokens", "temperature"]
        assert row["body"]["temperature"] == 0


def test_prompts_are_not_those_of_the_quickstart(rows: list[dict[str, Any]]) -> None:
    prompts = [row["body"]["messages"][0]["content"] for row in rows]
    assert not set(prompts) & {message["content"] for one in quickstart_requests() for message in one.messages}
    assert len(set(prompts)) > 480


def test_answers_share_more_with_each_other_than_with_their_prompts() -> None:
    """Of the answers hoped for, cut into all pieces of 12 characters; stories, which nobody can foretell, aside."""
    earlier: set[str] = set()
    in_prompt = in_earlier = total = 0
    for row, answer in templated_rows():
        if row["category"] == "story":
            continue
        pieces = [answer[start : start + 12] for start in range(len(answer) - 12)]
        in_prompt += sum(piece in row["body"]["messages"][0]["content"] for piece in pieces)
        in_earlier += sum(piece in earlier for piece in pieces)
        total += len(pieces)
        earlier.update(pieces)
    assert in_earlier > 5 * in_prompt
    assert in_earlier > 0.4 * total


def test_records_of_one_form_have_the_same_keys() -> None:
    keys = Counter(tuple(json.loads(answer)) for row, answer in templated_rows() if row["category"] == "record_to_json")
    assert len(keys) == 4
    assert min(keys.values()) > 30


def test_answers_fit_the_context(rows: list[dict[str, Any]]) -> None:
    assert max(len(row["body"]["messages"][0]["content"]) + row["body"]["max_tokens"] for row in rows) < CONTEXT
