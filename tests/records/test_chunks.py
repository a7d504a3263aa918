"""Chunks have the keys of a real server's, and fit OpenAI's own types."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk

from batchspec.logprobs import chat_logprobs
from batchspec.records import Choice, Usage, response_record
from batchspec.streaming import ChunkShape

from .making import CREATED, entry, request, token_bytes

CAPTURE = json.loads((Path(__file__).parent.parent / "data" / "oracle" / "ngram_k3_n1-3" / "stream.json").read_text())
USAGE = Usage(prompt_tokens=2, completion_tokens=3)
LOGPROBS = chat_logprobs([entry(ord("a"), -0.5, a=-0.5)], token_bytes=token_bytes)


def shape(*, chat: bool, ids: bool) -> ChunkShape:
    return ChunkShape(request(chat=chat, return_token_ids=ids), model_name="m", created=CREATED)


def delta(chunks: ChunkShape, index: int = 0, **changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = dict.fromkeys(("logprobs", "token_ids", "finish_reason", "stop_reason", "prompt_token_ids"))
    return chunks.delta(index, **({"text": "a"} | given | changes))


def stream(*, chat: bool, ids: bool) -> list[dict[str, Any]]:
    """Return an opening, two steps and the usage."""
    chunks = shape(chat=chat, ids=ids)
    opening = [chunks.role(0, prompt_token_ids=[1, 2])] if chat else []
    return [
        *opening,
        delta(chunks, token_ids=[5], prompt_token_ids=None if chat else [1, 2]),
        delta(chunks, token_ids=[6, 7], finish_reason="length"),
        chunks.usage(USAGE, {"speculative_decoding": None}),
    ]


def keys(value: Any) -> Any:
    """Return the keys of a chunk, and of its choices and their deltas, in order."""
    if isinstance(value, list):
        return [keys(item) for item in value]
    return [(key, keys(item) if key in ("choices", "delta") else None) for key, item in value.items()]


def test_completion_has_the_keys_that_a_server_writes() -> None:
    theirs = [chunk for chunk in CAPTURE["usage"] if chunk != "[DONE]"]
    theirs[-1].pop("system_fingerprint")
    assert keys(stream(chat=False, ids=True)) == keys([theirs[0], *theirs[-2:]])


def test_chat_has_the_keys_that_a_server_writes() -> None:
    theirs = [chunk for chunk in CAPTURE["chat_usage"] if chunk != "[DONE]"]
    theirs[0].pop("prompt_text")
    theirs[-1].pop("system_fingerprint")
    assert keys(stream(chat=True, ids=True)) == keys([*theirs[:2], *theirs[-2:]])


@pytest.mark.parametrize("chat", [True, False])
def test_token_ids_have_no_key_unless_asked_for(chat: bool) -> None:
    assert "token_ids" not in json.dumps(stream(chat=chat, ids=False))
    with_ids = stream(chat=chat, ids=True)
    assert [choice["token_ids"] for chunk in with_ids[-3:] for choice in chunk["choices"]] == [[5], [6, 7]]
    holder = with_ids[0] if chat else with_ids[0]["choices"][0]
    assert holder["prompt_token_ids"] == [1, 2]


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("logprobs", [LOGPROBS, None])
def test_chat_fits_the_type_of_openai(ids: bool, logprobs: dict[str, Any] | None) -> None:
    more = delta(shape(chat=True, ids=ids), index=1, logprobs=logprobs, finish_reason="stop", stop_reason="\n")
    for chunk in [*stream(chat=True, ids=ids), more]:
        parsed = ChatCompletionChunk.model_validate(chunk, strict=True)
        assert parsed.model_dump(exclude_unset=True) == chunk


@pytest.mark.parametrize("ids", [True, False])
def test_completion_fits_the_type_of_openai(ids: bool) -> None:
    for chunk in stream(chat=False, ids=ids):
        for choice in chunk["choices"]:
            # The type is that of a whole completion and demands a reason, which a stream has on its last chunk only.
            choice["finish_reason"] = choice["finish_reason"] or "stop"
        parsed = Completion.model_validate(chunk, strict=True)
        assert parsed.model_dump(exclude_unset=True) == chunk


@pytest.mark.parametrize("chat", [True, False])
def test_only_the_last_chunk_has_usage_and_metrics(chat: bool) -> None:
    *steps, last = stream(chat=chat, ids=False)
    assert all("metrics" not in chunk and "usage" not in chunk for chunk in steps)
    assert last["choices"] == []
    assert last["usage"] == USAGE.document()
    assert last["metrics"] == {"speculative_decoding": None}
    assert shape(chat=chat, ids=False).usage(USAGE, None)["metrics"] is None


@pytest.mark.parametrize("chat", [True, False])
def test_id_and_model_are_those_of_the_body(chat: bool) -> None:
    body = response_record(
        request(chat=chat),
        choices=[Choice(text="a", finish_reason="stop")],
        usage=USAGE,
        metrics=None,
        model_name="m",
        created=CREATED,
    )["response"]["body"]
    for chunk in stream(chat=chat, ids=False):
        assert [chunk[key] for key in ("id", "created", "model")] == [body[key] for key in ("id", "created", "model")]
