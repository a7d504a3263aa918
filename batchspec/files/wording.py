"""How a value that was found in the input is worded in an error message."""

from typing import Any

import orjson

__all__ = ["beginning", "describe", "listed", "shown"]

_MAX_SHOWN = 60


def shown(value: Any) -> str:
    """Return the value as JSON, shortened to about 60 characters and always on one line."""
    try:
        text = orjson.dumps(value, default=str).decode()
    except (TypeError, RecursionError):
        text = "…"
    return beginning(text)


def beginning(text: str) -> str:
    """Return a text as it is, or its first 60 characters: an id may be as long as its line."""
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def describe(value: Any) -> str:
    """Return the value with its JSON type, as in ``the string "16"`` or ``an empty array``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {shown(value)}"
    if isinstance(value, float) and value - value != 0:
        return f"the number {value}"
    if isinstance(value, int) and abs(value) >= 2**63:
        return "a number beyond 64 bits"
    if isinstance(value, int | float):
        return f"the number {shown(value)}"
    if isinstance(value, str):
        return f"the string {shown(value)}" if value else "an empty string"
    if isinstance(value, list | tuple):
        return f"the array {shown(value)}" if value else "an empty array"
    if isinstance(value, dict):
        return f"the object {shown(value)}" if value else "an empty object"
    return f"a {type(value).__name__}"


def listed(names: list[str], *, limit: int = 8) -> str:
    """Return quoted names separated by commas, at most ``limit`` of them."""
    text = ", ".join(shown(name) for name in names[:limit])
    return text + ", …" if len(names) > limit else text
