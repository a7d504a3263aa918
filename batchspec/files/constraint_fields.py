"""Which tokens may be chosen, and which are pushed: bias, bad words, allowed tokens."""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.fields import MAX_TOKEN_ID, object_, texts, token_ids, wrong
from batchspec.files.wording import shown

__all__ = ["parse_allowed_token_ids", "parse_bad_words", "parse_logit_bias"]

_MAX_BIAS = 100
_MAX_DIGITS = len(str(MAX_TOKEN_ID))


def parse_logit_bias(fields: Mapping[str, Any]) -> tuple[tuple[int, float], ...]:
    """Return (token id, number from -100 to 100), by ascending token id.

    Raises:
        RequestError: a key is no token id in digits or repeats one, or a number is out of range.
    """
    bias: dict[int, float] = {}
    spelled: dict[int, str] = {}
    for key, value in (object_(fields, "logit_bias") or {}).items():
        name = f"logit_bias[{shown(key)}]"
        token = _token(key)
        if token is None:
            raise RequestError(
                f'"logit_bias" has the key {shown(key)}: give a token id in digits, from 0 to {MAX_TOKEN_ID}',
                param=name,
            )
        if token in bias:
            raise RequestError(
                f'"logit_bias" has {shown(spelled[token])} and {shown(key)}, which are one token: keep one', param=name
            )
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not -_MAX_BIAS <= value <= _MAX_BIAS:
            code = None if is_number else "invalid_type"
            raise wrong(name, value, f"a number from {-_MAX_BIAS} to {_MAX_BIAS}", code=code)
        bias[token], spelled[token] = float(value), key
    return tuple(sorted(bias.items()))


def _token(key: Any) -> int | None:
    """Return the token id that a key spells, None if it spells none."""
    if not isinstance(key, str) or not (key.isascii() and key.isdigit()) or len(key) > _MAX_DIGITS:
        return None
    return int(key) if int(key) <= MAX_TOKEN_ID else None


def parse_bad_words(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts that are not to be generated; none for null and for an empty array."""
    value = fields.get("bad_words")
    return () if value is None else texts(value, "bad_words")


def parse_allowed_token_ids(fields: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the only tokens that may be chosen, each once, in the order given; None, also for an empty array: all."""
    value = fields.get("allowed_token_ids")
    return None if value is None else tuple(dict.fromkeys(token_ids(value, "allowed_token_ids"))) or None
