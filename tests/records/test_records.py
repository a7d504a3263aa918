"""Bodies fit OpenAI's own types; every served record tells the parameters it ran with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion

from batchspec.logprobs import chat_logprobs, completion_logprobs
from batchspec.params import SamplingParams, StructuredOutput
from batchspec.records import Choice, Usage, error_record, response_record, sampling_document, stream_record
from batchspec.request import RejectedLine, Request

from .making import CREATED, entry, request, token_bytes

USAGE = Usage(prompt_tokens=2, completion_tokens=2)
ENTRIES = [entry(ord("o"), -0.25, o=-0.25, k=-2.0), entry(0xE2, -0.5, k=-1.0)]
LOGPROBS: dict[bool, Mapping[str, Any]] = {
    True: chat_logprobs(ENTRIES, token_bytes=token_bytes),
    False: completion_logprobs(ENTRIES, offsets=[0, 1], token_ids=[ord("o"), 0xE2], token_bytes=token_bytes),
}


def record_of(asked: Request, *choices: Choice) -> dict[str, Any]:
    return response_record(asked, choices=choices, usage=USAGE, metrics={"a": 1}, model_name="m", created=CREATED)


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("logprobs", [True, False])
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_bodies_fit_the_types_of_openai(chat: bool, logprobs: bool, reason: str) -> None:
    choice = Choice(text="o\ufffd", finish_reason=reason, logprobs=LOGPROBS[chat] if logprobs else None)
    body = record_of(request(chat=chat), choice, choice)["response"]["body"]
    model = ChatCompletion if chat else Completion
    parsed = model.model_validate(body, strict=True)
    assert parsed.model_dump(exclude_unset=True) == body
    assert body["choices"][1]["logprobs"] == (LOGPROBS[chat] if logprobs else None)
    model.model_validate_json(orjson.dumps(body), strict=True)


def test_prompt_logprobs_stand_where_a_server_writes_them() -> None:
    choices = [Choice(text="a", finish_reason="stop", prompt_logprobs=[None, {"7": {}}])] * 2
    chat = record_of(request(chat=True, prompt_logprobs=0), *choices)["response"]["body"]
    assert chat["prompt_logprobs"] == [None, {"7": {}}]
    assert "prompt_logprobs" not in chat["choices"][0]
    completion = record_of(request(chat=False, prompt_logprobs=0), *choices)["response"]["body"]
    assert [choice["prompt_logprobs"] for choice in completion["choices"]] == [[None, {"7": {}}]] * 2
    assert "prompt_logprobs" not in completion


@pytest.mark.parametrize("chat", [True, False])
def test_prompt_logprobs_have_no_key_unless_asked_for(chat: bool) -> None:
    body = record_of(request(chat=chat), Choice(text="a", finish_reason="stop"))["response"]["body"]
    assert b"prompt_logprobs" not in orjson.dumps(body)


def test_common_parameters_are_always_told() -> None:
    expected = {"max_tokens": None, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "seed": 0}
    assert sampling_document(SamplingParams()) == expected
    assert sampling_document(SamplingParams(return_token_ids=True)) == expected


def test_other_parameters_are_told_where_they_differ() -> None:
    sampling = SamplingParams(
        max_tokens=7,
        temperature=0.0,
        seed=5,
        n=2,
        stop=("a", "b"),
        logit_bias=((5, -1.5),),
        structured=StructuredOutput(choice=("x", "y")),
        logprobs=0,
        ignore_eos=True,
    )
    document = sampling_document(sampling)
    assert document == {
        "max_tokens": 7,
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "seed": 5,
        "n": 2,
        "stop": ["a", "b"],
        "ignore_eos": True,
        "logit_bias": {"5": -1.5},
        "structured": {"choice": ["x", "y"]},
        "logprobs": 0,
    }
    assert orjson.loads(orjson.dumps(document)) == document


def test_parameters_stand_behind_the_category() -> None:
    asked = replace(request(chat=False), category="maths")
    keys = ["id", "custom_id", "category", "sampling", "response", "error"]
    assert list(record_of(asked, Choice(text="a", finish_reason="stop"))) == keys
    assert list(stream_record(asked, chunks=[])) == keys


def test_error_records_have_no_parameters() -> None:
    rejected = RejectedLine(index=3, line=4, custom_id="x", message="no.")
    assert "sampling" not in error_record(rejected)


def test_stream_has_its_chunks_as_body() -> None:
    chunks: list[dict[str, Any]] = [{"a": 1}, {"b": 2}]
    response = stream_record(request(chat=True), chunks=chunks)["response"]
    assert response == {"status_code": 200, "request_id": "req_00000003", "body": chunks}
