"""Token ids from responses of every shape; a row without them is named with what is missing, never guessed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchspec.acceptance import Level
from batchspec.files import responses_to_parquet
from batchspec.replay.recorded import NO_INDEX, Recorded
from batchspec.request import Request
from batchspec.testing import TableModel
from tests.core.runs import ask, ask_chat, checked_engine, serve
from tests.core.scripts import counting_drafter

from .logs import ORACLE, left_out_in, recorded_in, write_log


def ids_of(recorded: list[Recorded]) -> list[tuple[list[int], list[int], list[int], int]]:
    return [(one.prompt.tolist(), one.output.tolist(), one.cut.tolist(), one.sample_index) for one in recorded]


def body(*choices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "cmpl-1", "object": "text_completion", "choices": list(choices), "usage": {}, **fields}


def choice(output: Any = (3, 4), prompt: Any = (1, 2), **fields: Any) -> dict[str, Any]:
    as_lists = [list(ids) if isinstance(ids, tuple) else ids for ids in (output, prompt)]
    return {"index": 0, "text": "x", "token_ids": as_lists[0], "prompt_token_ids": as_lists[1], **fields}


def line(inner: Any, **fields: Any) -> dict[str, Any]:
    return {"custom_id": "a", "response": {"status_code": 200, "body": inner}, "error": None, **fields}


def records_of(requests: list[Request], *, level: Level = Level.NONE) -> list[dict[str, Any]]:
    return serve(checked_engine(model=TableModel.counting(), drafter=counting_drafter(3), level=level), requests)


def test_a_batch_line_and_a_plain_body(tmp_path: Path) -> None:
    rows = [line(body(choice()), category="code", id="batch_req_00000007"), body(choice())]
    first, second = recorded_in(write_log(tmp_path / "log.jsonl", rows))
    assert ids_of([first, second]) == [([1, 2], [3, 4], [], 0)] * 2
    assert (first.custom_id, first.category, first.index, first.line, first.row) == ("a", "code", 7, 1, 0)
    assert (second.custom_id, second.category, second.index, second.line, second.row) == (
        "cmpl-1",
        None,
        NO_INDEX,
        2,
        1,
    )


def test_samples_and_prompts_are_outputs_of_one_request(tmp_path: Path) -> None:
    requests = [ask([10], [20, 21], max_tokens=2, n=2, temperature=0.0), ask([30], index=1, max_tokens=1)]
    found = recorded_in(write_log(tmp_path / "log.jsonl", records_of(requests)))
    assert ids_of(found) == [
        ([10], [11, 12], [], 0),
        ([10], [11, 12], [], 1),
        ([20, 21], [22, 23], [], 2),
        ([20, 21], [22, 23], [], 3),
        ([30], [31], [], 0),
    ]
    assert [(one.row, one.index) for one in found] == [(0, 0)] * 4 + [(1, 1)]


def test_choices_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    rows = [body(choice((8, 9), index=1), choice((5, 6), index=0))]
    assert [one.output.tolist() for one in recorded_in(write_log(tmp_path / "log.jsonl", rows))] == [[5, 6], [8, 9]]


def test_detailed_records_need_no_returned_ids_and_tell_what_was_cut(tmp_path: Path) -> None:
    records = records_of([ask([10, 11], max_tokens=2)], level=Level.DETAILED)
    for one in records[0]["response"]["body"]["choices"]:
        one["token_ids"] = one["prompt_token_ids"] = None
    assert ids_of(recorded_in(write_log(tmp_path / "log.jsonl", records))) == [([10, 11], [12, 13], [14, 15, 16], 0)]


def test_a_chats_prompt_stands_beside_its_choices(tmp_path: Path) -> None:
    (record,) = records_of([ask_chat("ab", max_tokens=3)])
    (one,) = recorded_in(write_log(tmp_path / "log.jsonl", [record]))
    assert one.prompt.tolist() == record["response"]["body"]["prompt_token_ids"]


def test_turns_are_outputs_with_prompts_of_their_own(tmp_path: Path) -> None:
    (record,) = records_of([ask_chat("ab", "cd", max_tokens=3)], level=Level.DETAILED)
    first, second = recorded_in(write_log(tmp_path / "log.jsonl", [record]))
    assert first.prompt.tolist() == second.prompt[: len(first.prompt)].tolist()
    assert (first.sample_index, second.sample_index, first.row, second.row) == (0, 0, 0, 0)


def test_without_detail_the_prompts_of_later_turns_are_missing(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.jsonl", records_of([ask_chat("ab", "cd", max_tokens=3)]))
    assert left_out_in(path) == [(1, "later turns without prompts", "r0")]
    assert recorded_in(path) == []


@pytest.mark.parametrize("level", [Level.NONE, Level.DETAILED])
def test_a_stream_is_put_together(tmp_path: Path, level: Level) -> None:
    requests = [
        replace(ask([10], max_tokens=6), stream=True, include_usage=True),
        replace(ask_chat("ab", "c", index=1, max_tokens=6), stream=True, include_usage=True),
        replace(ask([20], index=2, max_tokens=5, n=2), stream=True),
    ]
    whole = [replace(request, stream=False, include_usage=False) for request in requests]
    streamed = recorded_in(write_log(tmp_path / "streamed.jsonl", records_of(requests, level=level)))
    at_once = recorded_in(write_log(tmp_path / "whole.jsonl", records_of(whole, level=Level.DETAILED)))
    assert [each[:2] for each in ids_of(streamed)] == [each[:2] for each in ids_of(at_once)]
    assert [each[3] for each in ids_of(streamed)] == [each[3] for each in ids_of(at_once)]


CAPTURED = json.loads((ORACLE / "ngram_k3_n1-3" / "stream.json").read_text())
FORMS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "chunks": lambda chunks: [chunk for chunk in chunks if chunk != "[DONE]"],
    "events": lambda chunks: [": wait", *(f"data: {as_text(chunk)}" for chunk in chunks), ""],
    "a list": lambda chunks: [[chunk for chunk in chunks if chunk != "[DONE]"]],
    "a line around a list": lambda chunks: [line(chunks)],
    "a line around text": lambda chunks: [line("".join(f"data: {as_text(chunk)}\n\n" for chunk in chunks))],
    "a response that is a list": lambda chunks: [{"custom_id": "a", "response": chunks}],
}


def as_text(chunk: Any) -> str:
    return chunk if isinstance(chunk, str) else json.dumps(chunk)


@pytest.mark.parametrize("form", FORMS)
def test_a_servers_stream_is_the_same_in_every_form(tmp_path: Path, form: str) -> None:
    for name in ("usage", "no_usage"):
        chunks = CAPTURED[name]
        parts = [choice["token_ids"] for chunk in chunks if chunk != "[DONE]" for choice in chunk["choices"]]
        rows = [body(choice(), id="first"), *FORMS[form](chunks), body(choice(), id="last")]
        found = recorded_in(write_log(tmp_path / f"{name}.jsonl", rows))
        assert len(found) == 3
        (one,) = [each for each in found if each.custom_id not in ("first", "last")]
        assert one.output.tolist() == [token_id for ids in parts for token_id in ids or ()]
        assert len(one.output) > 10
        assert one.prompt.tolist() == chunks[0]["choices"][0]["prompt_token_ids"]
        assert one.line == (3 if form == "events" else 2)


def test_streams_whose_chunks_are_mixed_are_told_apart(tmp_path: Path) -> None:
    one, other = (FORMS["chunks"](CAPTURED[name]) for name in ("usage", "no_usage"))
    mixed = [chunk | {"category": "code"} for pair in zip(one, other, strict=False) for chunk in pair]
    found = recorded_in(write_log(tmp_path / "log.jsonl", [*mixed, *one[len(other) :], *other[len(one) :]]))
    assert [each.custom_id for each in found] == [one[0]["id"], other[0]["id"]]
    assert [each.category for each in found] == ["code", "code"]
    for each, chunks in zip(found, (one, other), strict=True):
        (alone,) = recorded_in(write_log(tmp_path / "alone.jsonl", chunks))
        assert each.output.tolist() == alone.output.tolist()


def test_a_stream_that_broke_off_with_an_error_is_one(tmp_path: Path) -> None:
    chunks = [*FORMS["chunks"](CAPTURED["usage"])[:3]]
    chunks.append(chunks[-1] | {"error": {"message": "lost"}})
    path = write_log(tmp_path / "log.jsonl", chunks)
    assert left_out_in(path) == [(1, "error", chunks[0]["id"])]


def test_an_empty_prompt_of_a_stream_is_one(tmp_path: Path) -> None:
    chunk = {"choices": [{"index": 0, "text": "x", "token_ids": [3], "prompt_token_ids": []}]}
    more = {"choices": [{"index": 0, "text": "y", "token_ids": [4, 5]}], "prompt_token_ids": None}
    assert ids_of(recorded_in(write_log(tmp_path / "log.jsonl", [line([chunk, more])]))) == [([], [3, 4, 5], [], 0)]


def test_every_file_format_gives_the_same(tmp_path: Path) -> None:
    requests = [ask([10 + i], index=i, max_tokens=5) for i in range(9)]
    path = write_log(tmp_path / "log.jsonl", records_of(requests, level=Level.DETAILED))
    expected = ids_of(recorded_in(path))
    responses_to_parquet(jsonl_path=path, parquet_path=tmp_path / "log.parquet")
    with pa.output_stream(tmp_path / "log.jsonl.gz", compression="gzip") as stream:
        stream.write(path.read_bytes())
    for name in ("log.parquet", "log.jsonl.gz"):
        found = recorded_in(tmp_path / name)
        assert ids_of(found) == expected
        assert [one.index for one in found] == list(range(9))


FAULTS: dict[str, tuple[Any, str, str | None]] = {
    "no json": ("not json", "not a response", None),
    "an array": ([1], "not a response", None),
    "no response": ({"custom_id": "a"}, "not a response", "a"),
    "no choices": (line(body()), "not a response", "a"),
    "a choice that is none": (line(body("x")), "not a response", "a"),  # type: ignore[arg-type]
    "a number of a choice that is none": (line(body(choice(index="0"))), "not a response", "a"),
    "an error": ({"custom_id": "a", "response": None, "error": {"message": "no"}}, "error", "a"),
    "another status": (line(body(choice())) | {"response": {"status_code": 400, "body": {}}}, "error", "a"),
    "an error in the body": (line({"error": {"message": "no"}}), "error", "a"),
    "text alone": (line(body(choice(None))), "no token ids", "a"),
    "no prompt": (line(body(choice(prompt=None))), "no prompt", "a"),
    "no output": (line(body(choice(()))), "no output", "a"),
    "a fraction": (line(body(choice([3.5]))), "not a response", "a"),
    "a truth": (line(body(choice([True, 3]))), "not a response", "a"),
    "below zero": (line(body(choice([-1]))), "not a response", "a"),
    "beyond 31 bits": (line(body(choice([2**31]))), "not a response", "a"),
    "text for ids": (line(body(choice("abc"))), "not a response", "a"),
    "sequences that are none": (line(body(choice(), metrics={"batchspec": {"sequences": 3}})), "not a response", "a"),
    "a sequence without a cut": (
        line(body(choice(), metrics={"batchspec": {"sequences": [{"prompt_token_ids": [1], "token_ids": [2]}]}})),
        "not a response",
        "a",
    ),
    "a chunk that is none": (line([3]), "not a response", "a"),
    "two responses in a list": (line([body(choice()), body(choice(), id="2")]), "not a response", "a"),
    "chunks as text that are none": (line("data: {"), "not a response", "a"),
    "an event that is none": ("data: {", "not a response", None),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_row_that_cannot_be_replayed_is_named(tmp_path: Path, name: str) -> None:
    row, cause, custom_id = FAULTS[name]
    path = write_log(tmp_path / "log.jsonl", [body(choice()), row, body(choice())])
    assert left_out_in(path) == [(2, cause, custom_id)]
    assert [(one.line, one.row) for one in recorded_in(path)] == [(1, 0), (3, 1)]


def test_a_parquet_row_without_a_response_is_named(tmp_path: Path) -> None:
    table = pa.table({"custom_id": ["a", "b"], "response": ["{", None]})
    pq.write_table(table, tmp_path / "log.parquet")
    assert left_out_in(tmp_path / "log.parquet") == [(1, "not a response", "a"), (2, "not a response", "b")]


def test_ids_are_wide_and_grammars_are_noted(tmp_path: Path) -> None:
    row = line(body(choice([2**31 - 1])), sampling={"structured": {"regex": "a"}})
    (one,) = recorded_in(write_log(tmp_path / "log.jsonl", [row]))
    assert one.output.dtype == np.int64
    assert one.has_grammar
    assert one.output.tolist() == [2**31 - 1]
