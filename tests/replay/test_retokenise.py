"""Texts without token ids, encoded anew with the prompts from the input: marked, and never a chat."""

import json
from pathlib import Path
from typing import Any

import pytest

from batchspec.errors import UsageError
from batchspec.replay.retokenise import Retokeniser, read_prompts

from .logs import config_of, left_out_in, recorded_in, replayed, write_log

MODEL = Path(__file__).parents[2] / "batchspec" / "models" / "target"


def text_line(custom_id: str, *texts: str, is_chat: bool = False) -> dict[str, Any]:
    choices = [
        {"index": i, **({"message": {"role": "assistant", "content": text}} if is_chat else {"text": text})}
        for i, text in enumerate(texts)
    ]
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": {"choices": choices}}, "error": None}


def asked(custom_id: str, prompt: Any, **fields: Any) -> dict[str, Any]:
    body = {"model": "m", "prompt": prompt, **fields}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/completions", "body": body}


def retokeniser_for(tmp_path: Path, *requests: Any) -> Retokeniser:
    prompts = read_prompts(str(write_log(tmp_path / "requests.jsonl", requests))) if requests else {}
    return Retokeniser(str(MODEL), prompts=prompts)


def test_prompt_and_output_are_encoded_as_the_engine_does(tmp_path: Path) -> None:
    retokeniser = retokeniser_for(tmp_path, asked("a", "one two one"), "not json", asked("b", [5, 6, 7]))
    path = write_log(tmp_path / "log.jsonl", [text_line("a", " two one two"), text_line("b", "x")])
    first, second = recorded_in(path, retokeniser=retokeniser)
    bos = json.loads((MODEL / "tokenizer_config.json").read_text())["bos_token"]
    assert first.prompt.tolist() == retokeniser.encode_plain(f"{bos}one two one")
    assert first.output.tolist() == retokeniser.encode_plain(" two one two")
    assert second.prompt.tolist() == [5, 6, 7]
    assert first.is_retokenised
    assert second.is_retokenised


def test_several_prompts_have_their_samples_in_order(tmp_path: Path) -> None:
    retokeniser = retokeniser_for(tmp_path, asked("a", [[5], [6]], n=2))
    path = write_log(tmp_path / "log.jsonl", [text_line("a", "p", "q", "r", "s")])
    found = recorded_in(path, retokeniser=retokeniser)
    assert [(one.prompt.tolist(), one.sample_index) for one in found] == [([5], 0), ([5], 1), ([6], 2), ([6], 3)]


def test_a_truncated_prompt_is_what_the_model_saw(tmp_path: Path) -> None:
    requests = [asked("a", [1, 2, 3], truncate_prompt_tokens=2), asked("b", [1, 2, 3], truncate_prompt_tokens=-1)]
    path = write_log(tmp_path / "log.jsonl", [text_line("a", "x"), text_line("b", "x")])
    retokeniser = retokeniser_for(tmp_path, *requests)
    assert [one.prompt.tolist() for one in recorded_in(path, retokeniser=retokeniser)] == [[2, 3]]
    assert left_out_in(path, retokeniser=retokeniser) == [(2, "no prompt", "b")]


@pytest.mark.parametrize(
    ("line", "request_", "cause"),
    [
        (text_line("a", "x"), asked("b", "p"), "no prompt"),
        (text_line("a", "x", "y", "z"), asked("a", ["p", "q"]), "no prompt"),
        (text_line("a", "x"), asked("a", "p", echo=True), "an echoed prompt"),
        (text_line("a", "x", is_chat=True), asked("a", "p"), "a chat as text"),
        (text_line("a", ""), asked("a", "p"), "no output"),
        (text_line("a", "x"), {"custom_id": "a", "messages": [{"role": "user", "content": "p"}]}, "a chat as text"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, line: dict[str, Any], request_: dict[str, Any], cause: str) -> None:
    path = write_log(tmp_path / "log.jsonl", [line])
    assert left_out_in(path, retokeniser=retokeniser_for(tmp_path, request_)) == [(1, cause, "a")]


def test_the_result_says_that_it_is_not_exact_and_recorded_ids_are_kept(tmp_path: Path) -> None:
    exact = {"custom_id": "b", "choices": [{"text": "x", "token_ids": [1, 2, 1, 2], "prompt_token_ids": [1]}]}
    log = write_log(tmp_path / "log.jsonl", [text_line("a", "one two one two one two"), exact])
    prompts = write_log(tmp_path / "requests.jsonl", [asked("a", "one two")])
    document = replayed(log, configs=[config_of("ngram", 2)], tokenizer=str(MODEL), prompts=str(prompts))
    assert document["replayed"]["num_requests"] == 2
    assert document["replayed"]["num_retokenised_requests"] == 1


def test_without_a_tokenizer_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no tokenizer\.json that can be read"):
        Retokeniser(str(tmp_path), prompts={})
