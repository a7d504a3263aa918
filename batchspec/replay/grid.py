"""The settings to replay: methods times draft lengths, as drafters' configurations."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from batchspec.drafting import SpeculativeConfig
from batchspec.errors import UsageError

__all__ = ["METHODS", "parse_config", "parse_lengths", "parse_methods", "settings_for"]

METHODS = ("ngram", "suffix", "recall", "draft_model")
_REASONS = {
    "auto": "it decides by step times, which a replay has none of: replay the drafters that it chooses from",
    "forced": "its drafts need the grammar",
    "none": "it drafts nothing",
}
_DEFAULT_LOOKUP = {"prompt_lookup_min": 1, "prompt_lookup_max": 3}
_RANGE = re.compile(r"([0-9]+)(?:\.\.([0-9]+))?")


def parse_methods(text: str) -> list[str]:
    """Return the methods of a list such as ``ngram,suffix``, each once.

    Raises:
        UsageError: one is not known, or cannot be replayed.
    """
    methods = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for method in methods:
        if method in _REASONS:
            raise UsageError(f"--method {method} cannot be replayed, as {_REASONS[method]}.")
        if method not in METHODS:
            raise UsageError(f"--method {method!r} is not known; choose from {', '.join(METHODS)}.")
    return methods


def parse_lengths(text: str) -> list[int]:
    """Return the draft lengths of a list such as ``1..8`` or ``1,3,5``, ascending and each once.

    Raises:
        UsageError: it is no such list.
    """
    lengths: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not 1 <= first <= last <= 256:
            raise UsageError(
                f"--num-speculative-tokens must be numbers from 1 to 256, like 1..8 or 1,3,5, not {text!r}."
            )
        lengths.update(range(first, last + 1))
    return sorted(lengths)


def parse_config(text: str | None) -> dict[str, Any]:
    """Return further keys of the drafters from a JSON object.

    Raises:
        UsageError: it is none, or says what other flags say.
    """
    try:
        document = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise UsageError(f"--speculative-config is not JSON ({error.msg} at character {error.pos + 1}).") from None
    if not isinstance(document, dict):
        raise UsageError(f"--speculative-config must be a JSON object, not {text!r}.")
    for key in ("method", "num_speculative_tokens"):
        if key in document:
            raise UsageError(f"--speculative-config: say {key!r} by its flag, which takes several.")
    for key in ("adaptive", "forced_tokens"):
        if document.get(key):
            raise UsageError(f"--speculative-config: {key!r} cannot be replayed: it needs step times or grammars.")
    return document


def settings_for(methods: Sequence[str], lengths: Sequence[int], given: Mapping[str, Any]) -> list[SpeculativeConfig]:
    """Return a configuration for each method and draft length, method by method.

    Args:
        methods: of the drafters.
        lengths: of the drafts.
        given: further keys; each goes to the methods that heed it.

    Raises:
        UsageError: a key is not known, its value is wrong, or no method heeds it.
    """
    settings: list[SpeculativeConfig] = []
    useless = set(given)
    for method in methods:
        heeded = {key: value for key, value in given.items() if key in SpeculativeConfig(method=method).keys}
        useless -= set(heeded)
        if method == "ngram" and not heeded.keys() & _DEFAULT_LOOKUP.keys():
            heeded |= _DEFAULT_LOOKUP
        settings += [
            SpeculativeConfig.from_mapping(heeded | {"method": method, "num_speculative_tokens": length})
            for length in lengths
        ]
    for key in sorted(useless):
        SpeculativeConfig.from_mapping({"method": methods[0], key: given[key]})  # says what is wrong with it
    return settings
