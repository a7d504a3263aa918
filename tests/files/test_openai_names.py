"""Every field of OpenAI's own request models is honoured, knowingly ignored, or refused by name; none is dropped."""

from typing import Any

import pytest
from openai.types import completion_create_params as completions
from openai.types.chat import completion_create_params as chats

from batchspec.files.parameters import HONOURED, IGNORED, OF_ONE_ENDPOINT, OFF_VALUES
from batchspec.request import Endpoint

from .feeding import batch_line, chat_line, error_of, parse, user

MODELS = {
    Endpoint.CHAT: (chats.CompletionCreateParamsNonStreaming, chats.CompletionCreateParamsStreaming),
    Endpoint.COMPLETIONS: (
        completions.CompletionCreateParamsNonStreaming,
        completions.CompletionCreateParamsStreaming,
    ),
}
FIELDS = sorted({(endpoint, name) for endpoint, models in MODELS.items() for m in models for name in m.__annotations__})


def row(endpoint: Endpoint, **body: Any) -> dict[str, Any]:
    return chat_line(**body) if endpoint is Endpoint.CHAT else batch_line(**body)


def test_the_models_are_the_ones_meant() -> None:
    names = {name for _, name in FIELDS}
    assert {"messages", "prompt", "logit_bias", "stream_options", "web_search_options", "best_of"} <= names


@pytest.mark.parametrize(("endpoint", "name"), FIELDS)
def test_no_field_of_openai_is_dropped(endpoint: Endpoint, name: str) -> None:
    assert name in HONOURED or name in IGNORED or name in OFF_VALUES
    nonsense = {"un": "heard of"}
    if name in IGNORED:
        assert parse(row(endpoint, **{name: nonsense})) == parse(row(endpoint))
    else:
        param = error_of(row(endpoint, **{name: nonsense})).param
        assert param is not None
        assert param.startswith(name)


CHANGES: dict[str, Any] = {
    "add_generation_prompt": False,
    "add_special_tokens": {Endpoint.CHAT: True, Endpoint.COMPLETIONS: False},
    "allowed_token_ids": [1],
    "bad_words": ["a"],
    "chat_template_kwargs": {"a": 1},
    "continue_final_message": True,
    "echo": True,
    "frequency_penalty": 1,
    "guided_choice": ["a"],
    "guided_grammar": "a",
    "guided_json": {},
    "guided_regex": "a",
    "ignore_eos": True,
    "include_stop_str_in_output": True,
    "logit_bias": {"1": 1},
    "max_completion_tokens": 3,
    "max_tokens": 3,
    "messages": [user("Ho")],
    "min_p": 0.5,
    "min_tokens": 1,
    "model": "m",
    "n": 2,
    "presence_penalty": 1,
    "prompt": "Ho",
    "prompt_logprobs": 0,
    "repetition_penalty": 2,
    "response_format": {"type": "json_object"},
    "return_token_ids": True,
    "seed": 1,
    "skip_special_tokens": False,
    "stop": "a",
    "stop_token_ids": [1],
    "stream": True,
    "structured_outputs": {"regex": "a"},
    "temperature": 0,
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "top_k": 1,
    "top_p": 0.5,
    "truncate_prompt_tokens": 1,
}
WITH_ANOTHER: dict[str, tuple[dict[str, Any], Any]] = {
    "guided_whitespace_pattern": ({"guided_json": {}}, " "),
    "logprobs": ({}, {Endpoint.CHAT: True, Endpoint.COMPLETIONS: 0}),
    "stream_options": ({"stream": True}, {"include_usage": True}),
    "top_logprobs": ({"logprobs": True}, 2),
}


def test_every_honoured_name_changes_the_request_of_at_least_one_endpoint() -> None:
    assert CHANGES.keys() | WITH_ANOTHER.keys() == HONOURED
    assert not HONOURED & OFF_VALUES.keys()
    assert not (HONOURED | OFF_VALUES.keys()) & IGNORED


REFUSED_THERE = {
    Endpoint.CHAT: {"prompt", *OF_ONE_ENDPOINT[Endpoint.COMPLETIONS]},
    Endpoint.COMPLETIONS: {"messages", "max_completion_tokens", *OF_ONE_ENDPOINT[Endpoint.CHAT]},
}


@pytest.mark.parametrize("endpoint", Endpoint)
@pytest.mark.parametrize("name", sorted(HONOURED))
def test_a_name_changes_the_request_or_belongs_to_the_other_endpoint(name: str, endpoint: Endpoint) -> None:
    others, value = WITH_ANOTHER[name] if name in WITH_ANOTHER else ({}, CHANGES[name])
    value = value[endpoint] if name in ("logprobs", "add_special_tokens") else value
    own: dict[str, Any] = {"messages": [user("Hi")]} if endpoint is Endpoint.CHAT else {"prompt": "Hi"}
    if name in REFUSED_THERE[endpoint]:
        error = error_of(row(endpoint, **own | {name: value}))
        assert error.param == name
        assert "/v1/" in error.message
    else:
        assert parse(row(endpoint, **own | others | {name: value})) != parse(row(endpoint, **own | others))
