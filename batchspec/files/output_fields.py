"""What ends a text, and what is told about it: stop strings, log probabilities, streams."""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.defaults import RowDefaults
from batchspec.files.fields import filled_text, flag, integer, object_, only, texts, wrong
from batchspec.files.wording import describe
from batchspec.request import Endpoint

__all__ = ["parse_logprobs", "parse_prompt_logprobs", "parse_stop", "parse_streaming"]

_MAX_LOGPROBS = 20
_STREAM_OPTIONS = ("include_usage", "include_obfuscation", "continuous_usage_stats")


def parse_stop(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the stop strings, from one string or an array of them.

    Raises:
        RequestError: it is neither, or a string in it is empty.
    """
    value = fields.get("stop")
    if value is None:
        return ()
    if isinstance(value, str):
        return (filled_text(fields, "stop") or "",)
    if not isinstance(value, list):
        raise wrong("stop", value, "a string or an array of strings", code="invalid_type")
    return texts(value, "stop")


def parse_logprobs(fields: Mapping[str, Any], *, endpoint: Endpoint) -> int | None:
    """Return how many of the likeliest tokens to tell for every output token; None for no log probabilities.

    Completions say it with one number; chats with a boolean, and the number as ``top_logprobs``.

    Raises:
        RequestError: the number is not from 0 to 20, or is given the other endpoint's way.
    """
    value = fields.get("logprobs")
    if endpoint is Endpoint.COMPLETIONS:
        if value is True:
            raise wrong(
                "logprobs", value, f"an integer from 0 to {_MAX_LOGPROBS}, as completions do", code="invalid_type"
            )
        return None if value is False else integer(fields, "logprobs", low=0, high=_MAX_LOGPROBS)
    if value is not None and not isinstance(value, bool):
        raise wrong("logprobs", value, 'true or false, and the number as "top_logprobs"', code="invalid_type")
    top = integer(fields, "top_logprobs", low=0, high=_MAX_LOGPROBS)
    if top and not value:
        raise RequestError(
            f'"top_logprobs" is {top} without log probabilities: give "logprobs" true', param="top_logprobs"
        )
    return (top or 0) if value else None


def parse_prompt_logprobs(fields: Mapping[str, Any]) -> int | None:
    """Return the same for every prompt token.

    Raises:
        RequestError: it is not from 0 to 20, or the answer is a stream, whose chunks have no place for it.
    """
    top = integer(fields, "prompt_logprobs", low=0, high=_MAX_LOGPROBS)
    if top is not None and fields.get("stream") is True:
        raise RequestError(
            f'"prompt_logprobs" is {top} while "stream" is true, and chunks cannot carry them: remove one of the two',
            param="prompt_logprobs",
        )
    return top


def parse_streaming(fields: Mapping[str, Any], *, defaults: RowDefaults) -> tuple[bool, bool]:
    """Return whether the body is a list of chunks, and whether the last of them carries the usage.

    Raises:
        RequestError: options are given for what is no stream, or ask for something that is not supported.
    """
    is_stream = flag(fields, "stream") or False
    options = object_(fields, "stream_options")
    if options is None:
        return is_stream, is_stream and defaults.force_include_usage
    if not is_stream:
        raise RequestError(
            f'"stream_options" is {describe(options)} while "stream" is not true: remove it or give "stream" true',
            param="stream_options",
        )
    only(options, _STREAM_OPTIONS, prefix="stream_options.")
    for name in _STREAM_OPTIONS:
        if flag(options, name, prefix="stream_options.") and name != "include_usage":
            raise RequestError(
                f'"stream_options.{name}" is not supported yet (found true): remove it or give false',
                param=f"stream_options.{name}",
                code="unsupported_parameter",
            )
    return True, bool(options.get("include_usage")) or defaults.force_include_usage
