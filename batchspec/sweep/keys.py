"""The keys of a grid, and how their values are written."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from batchspec.drafting.config import METHODS
from batchspec.errors import UsageError

__all__ = ["KEYS", "Key", "find_key", "written"]

_RANGE = re.compile(r"(-?\d{1,10})(?:\.\.(\d{1,10}))?")
_MOST_VALUES = 10_000
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key.

    Attributes:
        name: as a grid has it.
        target: the setting that it stands for, by its name in ``SpeculativeConfig`` or ``EngineSettings``.
        kind: what its values are, for messages.
        read: returns the values that one text between two commas stands for, none if it is wrong.
        is_of_engine: whether it means something whatever the method.
    """

    name: str
    target: str
    kind: str
    read: Callable[[str], list[Any]]
    is_of_engine: bool

    def values(self, text: str) -> list[Any]:
        """Return the values of a list such as ``1,3,5``, each once; UsageError for a wrong one."""
        values: list[Any] = []
        for part in text.split(","):
            found = self.read(part)
            if not found:
                raise UsageError(f"--grid: {self.name} takes {self.kind}, not {part!r} (in {self.name}={text}).")
            values += [value for value in found if value not in values]
        return values


def _whole_numbers(text: str) -> list[Any]:
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    return list(range(first, last + 1)) if last - first < _MOST_VALUES else []


def _numbers(text: str) -> list[Any]:
    try:
        return [float(text)]
    except ValueError:
        return []


def _truths(text: str) -> list[Any]:
    return [_TRUTHS[text]] if text in _TRUTHS else []


def _methods(text: str) -> list[Any]:
    return [text] if text in METHODS else []


def _paths(text: str) -> list[Any]:
    return [text] if text else []


_WHOLE, _TRUTH = ("whole numbers like 1,3,5 or 1..8", _whole_numbers), ("true or false", _truths)
_NUMBER, _PATH = ("numbers like 0.1,0.5", _numbers), ("paths", _paths)
_METHOD = f"{', '.join(METHODS[:-1])} or {METHODS[-1]}", _methods
# Name, kind of value, and the name of the setting where it is another.
_OF_DRAFTERS = (
    ("method", _METHOD, ""),
    ("k", _WHOLE, "num_speculative_tokens"),
    ("prompt_lookup_min", _WHOLE, ""),
    ("prompt_lookup_max", _WHOLE, ""),
    ("suffix_decoding_max_tree_depth", _WHOLE, ""),
    ("suffix_decoding_max_cached_requests", _WHOLE, ""),
    ("suffix_decoding_max_spec_factor", _NUMBER, ""),
    ("suffix_decoding_min_token_prob", _NUMBER, ""),
    ("draft_model", _PATH, "model"),
    ("recall_path", _PATH, "path"),
    ("adaptive", _TRUTH, ""),
    ("forced_tokens", _TRUTH, ""),
)
_OF_ENGINES = (
    ("max_num_seqs", _WHOLE, ""),
    ("max_num_batched_tokens", _WHOLE, ""),
    ("enable_prefix_caching", _TRUTH, "prefix_caching"),
)
KEYS: Mapping[str, Key] = MappingProxyType(
    {
        name: Key(name=name, target=target or name, kind=kind, read=read, is_of_engine=keys is _OF_ENGINES)
        for keys in (_OF_DRAFTERS, _OF_ENGINES)
        for name, (kind, read), target in keys
    }
)
_OTHER_NAMES = {"num_speculative_tokens": "k"}


def find_key(name: str) -> Key:
    """Return the key of a name; UsageError for an unknown one."""
    key = KEYS.get(_OTHER_NAMES.get(name, name))
    if key is None:
        raise UsageError(f"--grid: unknown key {name!r}; the known keys are {', '.join(KEYS)}.")
    return key


def written(value: Any) -> str:
    """Return a value as a grid has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
