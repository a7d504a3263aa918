"""A stop text is found wherever it ends, and no part of it is shown, streamed or not."""

from typing import Any

import pytest
import torch

from batchspec.acceptance import Level
from batchspec.sequence import Sequence
from batchspec.testing import ScriptedDrafter, TableModel
from tests.core.runs import spec_of

from .bodies import flattened
from .serving import engine_of, parsed, serve_one


def engine_saying(text: bytes, *, k: int) -> Any:
    """Greedy answers to a prompt of one byte 0 spell the text, each byte of which occurs once; drafts are right."""
    tokens = [0, *text]
    assert len(set(tokens)) == len(tokens)
    table = torch.zeros(257, 257)
    for token, following in zip(tokens, [*tokens[1:], 256], strict=True):
        table[token, following] = 1.0

    def script(sequence: Sequence) -> list[int]:
        return [*text, 256][sequence.num_output_tokens :][:k]

    return engine_of(ScriptedDrafter(num_spec_tokens=k, script=script), model=TableModel(table), level=Level.DETAILED)


def asked(**fields: Any) -> dict[str, Any]:
    return {"prompt": [0], "max_tokens": 60, "temperature": 0} | fields


STREAM = {"stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize("k", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("stop", ["def", "cde", "d", "efg", "fgh"])
def test_a_stop_text_is_found_across_accepted_draft_tokens(stop: str, k: int) -> None:
    record = serve_one(engine_saying(b"abcdefghij", k=k), parsed(asked(stop=["xyz", stop])))
    choice = record["response"]["body"]["choices"][0]
    assert choice["text"] == "abcdefghij".partition(stop)[0]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    spec = spec_of(record)
    emitted = "abcdefghij".index(stop) + len(stop)
    assert record["response"]["body"]["usage"]["completion_tokens"] == emitted
    assert emitted - 1 == spec["num_decode_steps"] + spec["num_accepted_draft_tokens"] - spec["num_discarded_tokens"]
    assert spec["num_accepted_draft_tokens"] > 0 or emitted < 3


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("stop", ["def", "cde", "j"])
def test_no_delta_of_a_stream_shows_a_part_of_the_stop_text(stop: str, k: int) -> None:
    record = serve_one(engine_saying(b"abcdefghij", k=k), parsed(asked(stop=stop, **STREAM)))
    chunks = record["response"]["body"]
    whole = flattened(chunks)["choices"][0]
    assert whole["text"] == "abcdefghij".partition(stop)[0]
    assert (whole["finish_reason"], whole["stop_reason"]) == ("stop", stop)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]][-1] == "stop"


def test_text_held_back_for_a_stop_that_never_came_is_shown_at_the_end() -> None:
    record = serve_one(engine_saying(b"abcde", k=3), parsed(asked(stop="dex", **STREAM)))
    whole = flattened(record["response"]["body"])["choices"][0]
    assert (whole["text"], whole["finish_reason"]) == ("abcde", "stop")


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_characters_of_several_bytes_never_come_in_halves(k: int) -> None:
    text = "é漢😀"
    record = serve_one(engine_saying(text.encode(), k=k), parsed(asked(**STREAM)))
    chunks = record["response"]["body"]
    deltas = [choice["text"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(deltas) == text
    assert not any("\ufffd" in delta for delta in deltas)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_stop_text_of_several_bytes_is_found(k: int) -> None:
    record = serve_one(engine_saying("é漢😀".encode(), k=k), parsed(asked(stop=["漢"])))
    choice = record["response"]["body"]["choices"][0]
    assert (choice["text"], choice["stop_reason"]) == ("é", "漢")


def test_the_stop_text_is_kept_on_request() -> None:
    record = serve_one(engine_saying(b"abcdef", k=4), parsed(asked(stop="cd", include_stop_str_in_output=True)))
    assert record["response"]["body"]["choices"][0]["text"] == "abcd"


def test_stop_texts_within_the_first_min_tokens_do_not_count() -> None:
    record = serve_one(engine_saying(b"abcdef", k=4), parsed(asked(stop=["b", "e"], min_tokens=3)))
    choice = record["response"]["body"]["choices"][0]
    assert (choice["text"], choice["stop_reason"]) == ("abcd", "e")
