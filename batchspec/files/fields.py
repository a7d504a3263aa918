"""Typed reading of one field of a request: the value, None when it is not given, or a sentence.

Where a field stands within another one, ``prefix`` is the path to it, as in ``stream_options.``.
"""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.wording import describe, shown

__all__ = [
    "MAX_TOKEN_ID",
    "filled_text",
    "flag",
    "integer",
    "number",
    "object_",
    "only",
    "required",
    "text",
    "texts",
    "token_ids",
    "wrong",
]

MAX_TOKEN_ID = 2**31 - 1


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
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(whole, bool) or not isinstance(whole, int):
        raise wrong(name, value, right, code="invalid_type")
    if whole < low or (high is not None and whole > high):
        raise wrong(name, value, right)
    return whole


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


def flag(fields: Mapping[str, Any], name: str, *, prefix: str = "") -> bool | None:
    """Return a boolean."""
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise wrong(prefix + name, value, "true or false", code="invalid_type")
    return value


def text(fields: Mapping[str, Any], name: str, *, prefix: str = "") -> str | None:
    """Return a string."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise wrong(prefix + name, value, "a string", code="invalid_type")
    return value


def filled_text(fields: Mapping[str, Any], name: str, *, prefix: str = "") -> str | None:
    """Return a string that is not empty."""
    value = text(fields, name, prefix=prefix)
    if value == "":
        raise wrong(prefix + name, value, "a string with something in it")
    return value


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Return a list of strings, none of them empty, each once and in the order in which it first appears."""
    if not isinstance(value, list):
        raise wrong(name, value, "an array of strings", code="invalid_type")
    for position, item in enumerate(value):
        if not isinstance(item, str) or not item:
            code = None if item == "" else "invalid_type"
            raise wrong(f"{name}[{position}]", item, "a string with something in it", code=code)
    return tuple(dict.fromkeys(value))


def object_(fields: Mapping[str, Any], name: str, *, prefix: str = "") -> dict[str, Any] | None:
    """Return an object."""
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise wrong(prefix + name, value, "an object", code="invalid_type")
    return value


def only(fields: Mapping[str, Any], names: tuple[str, ...], *, prefix: str) -> None:
    """Raise RequestError for the first key of an object, not null, that is none of the names."""
    for name, value in fields.items():
        if value is not None and name not in names:
            raise RequestError(
                f"{shown(prefix + name)} is not supported (found {shown(value)}): remove it",
                param=prefix + name,
                code="unsupported_parameter",
            )


def token_ids(value: Any, name: str) -> tuple[int, ...]:
    """Return a list of token ids, each from 0 to 2^31 - 1; whether the model has them is not known here."""
    if not isinstance(value, list):
        raise wrong(name, value, "an array of token ids", code="invalid_type")
    for position, token in enumerate(value):
        if isinstance(token, bool) or not isinstance(token, int):
            raise wrong(f"{name}[{position}]", token, "a token id (an integer)", code="invalid_type")
        if not 0 <= token <= MAX_TOKEN_ID:
            raise wrong(f"{name}[{position}]", token, f"a token id from 0 to {MAX_TOKEN_ID}")
    return tuple(value)
