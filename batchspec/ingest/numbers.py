"""Counts out of JSON: integers of at least 0 and nothing that merely looks like one."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.faults import malformed

__all__ = ["MAX_COUNT", "MAX_DRAFT", "first_whole", "number", "whole", "wholes"]

MAX_COUNT = 2**31 - 1
MAX_DRAFT = 1024
_INTEGERS = {int}
_WHOLE = f"an integer from 0 to {MAX_COUNT}"


def whole(block: Mapping[str, Any], name: str) -> int | None:
    """Return a count; None where it is missing or null.

    Raises:
        RowFault: it is a boolean, a fraction, a text, negative, or beyond ``MAX_COUNT``.
    """
    value = block.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= MAX_COUNT:  # a boolean is an int, but no count
        raise malformed(name, value, _WHOLE)
    return value


def first_whole(block: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the count under the first of these names that is there."""
    for name in names:
        value = whole(block, name)
        if value is not None:
            return value
    return None


def wholes(block: Mapping[str, Any], name: str) -> list[int] | None:
    """Return a list of counts; None where it is missing or null.

    Raises:
        RowFault: it is no list, or one of its entries is no count.
    """
    values: Any = block.get(name)
    if values is None:
        return None
    if type(values) is not list:
        raise malformed(name, values, "a list of integers")
    if values and (set(map(type, values)) != _INTEGERS or min(values) < 0 or max(values) > MAX_COUNT):
        wrong = next(value for value in values if type(value) is not int or not 0 <= value <= MAX_COUNT)
        raise malformed(f"{name}[{values.index(wrong)}]", wrong, _WHOLE)
    return values


def number(block: Mapping[str, Any], name: str) -> float | None:
    """Return a number of at least 0; None where it is missing or null.

    Raises:
        RowFault: it is a boolean, not a number, or negative.
    """
    value = block.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not value >= 0:
        raise malformed(name, value, "a number of at least 0")
    return float(value)
