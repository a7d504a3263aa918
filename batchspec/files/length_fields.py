"""How long a prompt and an answer may be."""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.defaults import RowDefaults
from batchspec.files.fields import integer, wrong
from batchspec.request import Endpoint

__all__ = ["parse_max_tokens", "parse_min_tokens", "parse_truncation"]

_COMPLETIONS_MAX_TOKENS = 16


def parse_max_tokens(fields: Mapping[str, Any], *, endpoint: Endpoint, defaults: RowDefaults) -> int | None:
    """Return the most tokens to emit, from either of its two names; None for up to the context limit.

    Raises:
        RequestError: the two differ, or the newer name is given to completions, which do not have it.
    """
    old = integer(fields, "max_tokens", low=1)
    new = integer(fields, "max_completion_tokens", low=1)
    if new is not None and endpoint is Endpoint.COMPLETIONS:
        raise RequestError(
            f'"max_completion_tokens" ({new}) belongs to {Endpoint.CHAT}: give "max_tokens" here',
            param="max_completion_tokens",
            code="unsupported_parameter",
        )
    if old is not None and new is not None and old != new:
        raise RequestError(
            f'"max_tokens" is {old} and "max_completion_tokens" is {new}: give one of them', param="max_tokens"
        )
    given = old if new is None else new
    if given is None:
        given = defaults.max_tokens
    return _COMPLETIONS_MAX_TOKENS if given is None and endpoint is Endpoint.COMPLETIONS else given


def parse_min_tokens(fields: Mapping[str, Any], *, max_tokens: int | None) -> int:
    """Return the tokens that come before any end, at most as many as there may be at all.

    Raises:
        RequestError: there are more of them than ``max_tokens``, given or by default.
    """
    least = integer(fields, "min_tokens", low=0) or 0
    if max_tokens is not None and least > max_tokens:
        raise RequestError(
            f'"min_tokens" is {least} while "max_tokens" is {max_tokens}: give at most {max_tokens}, or raise'
            ' "max_tokens"',
            param="min_tokens",
        )
    return least


def parse_truncation(fields: Mapping[str, Any]) -> int | None:
    """Return how many of the prompt's last tokens to keep, -1 for as many as fit; None keeps all.

    Raises:
        RequestError: it is 0 or below -1.
    """
    kept = integer(fields, "truncate_prompt_tokens", low=-1)
    if kept == 0:
        raise wrong("truncate_prompt_tokens", kept, "an integer of at least 1, or -1 for as many as fit")
    return kept
