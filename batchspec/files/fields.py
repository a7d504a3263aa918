"""Typed reading of one field of a request: the value, None when it is not given, or a sentence."""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.wording import describe

__all__ = ["flag", "integer", "number", "required", "text", "token_ids", "wrong"]

_MAX_TOKEN_ID = 2**31 - 1


def wrong(name: str, value: Any, right: str, *, code: str | None = None) -> RequestError:
    """Return the error that names a field, the value found and what would be right."""
    return RequestError(f'"{name}" is {describe(value)}: give {right}', param=name, code=code or "invalid_value")


def required(fields: Mapping[str, Any], name: str, right: str, *, code: str) -> RequestError:
    """Return the error for a field that must be there and is either missing or wrong."""
    if name not in fields:
        return RequestError(f'"{name}" is missing: give {right}', param=name, code=code)
    return wrong(name, fields[name], right, code=code)


def integer(fields: Mapping[str, Any], name: str, *, low: int, high: int | None = None) -> int | None:
    """Return an integer in ``[low, high]``; 16.0 counts as 16, which is what Parquet writers make of gappy columns."""
    value = fields.get(name)
    if value is None:
        return None
    right = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(name, value, right, code="invalid_type")
    if value < low or (high is not None and value > high):
        raise wrong(name, value, right)
    return value


def number(
    fields: Mapping[str, Any], name: str, *, low: float, high: float, is_low_excluded: bool = False
) -> float | None:
    """Return a finite number in ``[low, high]``, or in ``(low, high]``."""
    value = fields.get(name)
    if value is None:
        return None
    right = f"a number above {low} and up to {high}" if is_low_excluded else f"a number from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(name, value, right, code="invalid_type")
    if not low <= value <= high or (is_low_excluded and value == low):
        raise wrong(name, value, right)
    return float(value)


def flag(fields: Mapping[str, Any], name: str) -> bool | None:
    """Return a boolean."""
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise wrong(name, value, "true or false", code="invalid_type")
    return value


def text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return a string."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise wrong(name, value, "a string", code="invalid_type")
    return value


def token_ids(value: Any, name: str) -> tuple[int, ...]:
    """Return a list of token ids, each from 0 to 2^31 - 1; whether the model has them is not known here."""
    if not isinstance(value, list):
        raise wrong(name, value, "an array of token ids", code="invalid_type")
    for position, token in enumerate(value):
        if isinstance(token, bool) or not isinstance(token, int):
            raise wrong(f"{name}[{position}]", token, "a token id (an integer)", code="invalid_type")
        if not 0 <= token <= _MAX_TOKEN_ID:
            raise wrong(f"{name}[{position}]", token, f"a token id from 0 to {_MAX_TOKEN_ID}")
    return tuple(value)
