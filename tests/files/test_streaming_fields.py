"""Streams, echoes and truncation: what surrounds the sampling of a request."""

from typing import Any

import pytest

from batchspec.files import RowDefaults

from .feeding import batch_line, chat_line, error_of, parse

STREAMS: list[tuple[dict[str, Any], bool, bool]] = [
    ({}, False, False),
    ({"stream": False, "stream_options": None}, False, False),
    ({"stream": True}, True, False),
    ({"stream": True, "stream_options": {}}, True, False),
    ({"stream": True, "stream_options": {"include_usage": False}}, True, False),
    ({"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}}, True, True),
    ({"stream": True, "stream_options": {"include_usage": None, "continuous_usage_stats": None}}, True, False),
]


@pytest.mark.parametrize(("body", "stream", "usage"), STREAMS)
def test_streams(body: dict[str, Any], stream: bool, usage: bool) -> None:
    forced = RowDefaults(force_include_usage=True)
    for row in (batch_line(**body), chat_line(**body), {"prompt": "Hi"} | body, {"turns": ["a", "b"]} | body):
        request, usual = parse(row), parse(row, defaults=forced)
        assert (request.stream, request.include_usage) == (stream, usage)
        assert (usual.stream, usual.include_usage) == (stream, stream)


@pytest.mark.parametrize(("value", "kept"), [(None, None), (-1, -1), (1, 1), (2048.0, 2048)])
def test_truncation(value: Any, kept: int | None) -> None:
    assert parse(batch_line(truncate_prompt_tokens=value)).truncate_prompt_tokens == kept
    assert parse(chat_line(truncate_prompt_tokens=value, truncation_side="left")).truncate_prompt_tokens == kept


def test_echo_leaves_the_log_probabilities_of_the_prompt_as_they_were_asked_for() -> None:
    request = parse(batch_line(echo=True, logprobs=2))
    assert (request.echo, request.sampling.logprobs, request.sampling.prompt_logprobs) == (True, 2, None)
    assert not parse(chat_line(echo=False)).echo


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({"stream": 1}, "stream", "true or false"),
        ({"stream_options": {}}, "stream_options", 'give "stream" true'),
        ({"stream": False, "stream_options": {"include_usage": True}}, "stream_options", 'give "stream" true'),
        ({"stream": True, "stream_options": True}, "stream_options", "give an object"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage", "true or false"),
        ({"stream": True, "stream_options": {"usage": True}}, "stream_options.usage", "remove it"),
        *(
            ({"stream": True, "stream_options": {name: value}}, f"stream_options.{name}", "false")
            for name in ("include_obfuscation", "continuous_usage_stats")
            for value in (True, 1)
        ),
        ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "an integer of at least 1, or -1"),
        ({"truncate_prompt_tokens": -2}, "truncate_prompt_tokens", "at least -1"),
        ({"truncate_prompt_tokens": "5"}, "truncate_prompt_tokens", "an integer"),
        ({"truncation_side": "right"}, "truncation_side", 'give "left"'),
    ],
)
def test_what_is_refused(body: dict[str, Any], param: str, words: str) -> None:
    for row in (batch_line(**body), chat_line(**body), {"prompt": "Hi"} | body):
        error = error_of(row)
        assert error.param == param
        assert words in error.message
