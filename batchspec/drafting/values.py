"""The values of the keys that configure a drafter, each checked by its kind; a wrong one is a sentence."""

import math
from typing import Any, NoReturn

from batchspec.errors import UsageError

__all__ = ["fraction", "named", "number", "number_or_all", "positive", "text", "truth"]

_LARGEST = 256  # no drafter gains from more tokens in a draft, and per-position counts have to be kept and shown
_MOST_REQUESTS = 10**9
_FLAGS = {
    "model": "--draft-model",
    "path": "--recall-path",
    "suffix_decoding_max_tree_depth": "",
    "suffix_decoding_max_cached_requests": "",
    "suffix_decoding_max_spec_factor": "",
    "suffix_decoding_min_token_prob": "",
}


def named(key: str) -> str:
    """Return how messages name a key, which may have come from its flag, if it has one, or from the JSON object."""
    flag = _FLAGS.get(key, f"--{key.replace('_', '-')}")
    return f"{flag} ({key!r} of --speculative-config)" if flag else f"{key!r} of --speculative-config"


def number(key: str, value: Any) -> int:
    """Return a number of tokens."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
        _refuse(key, f"an integer from 1 to {_LARGEST}", value)
    return value


def number_or_all(key: str, value: Any) -> int:
    """Return a number of requests; -1 for all of them."""
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= _MOST_REQUESTS:
        _refuse(key, f"an integer from 0 to {_MOST_REQUESTS}, or -1 for all", value)
    return value


def positive(key: str, value: Any) -> float:
    """Return a factor."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        _refuse(key, "a number above 0", value)
    return float(value)


def fraction(key: str, value: Any) -> float:
    """Return a share."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        _refuse(key, "a number from 0 to 1", value)
    return float(value)


def text(key: str, value: Any) -> str | None:
    """Return a path; None for one that is not given."""
    if value is not None and (not isinstance(value, str) or not value):
        _refuse(key, "a path", value)
    return value


def truth(key: str, value: Any) -> bool:
    """Return a switch."""
    if not isinstance(value, bool):
        _refuse(key, "true or false", value)
    return value


def _refuse(key: str, wanted: str, value: Any) -> NoReturn:
    raise UsageError(f"{named(key)} must be {wanted}, not {value!r}.")
