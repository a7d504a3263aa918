"""What a tool's definition and a call of it have in common."""

from typing import Any

from batchspec.files.fields import wrong

__all__ = ["parse_function"]

_EXAMPLE = 'an object, as in {"type": "function", "function": {"name": "f"}}'


def parse_function(item: Any, *, name: str) -> dict[str, Any]:
    """Return the function of a definition or a call; beyond its name it is not looked at.

    Raises:
        RequestError: the item is of another type than a function, or the function has no name.
    """
    if not isinstance(item, dict):
        raise wrong(name, item, _EXAMPLE, code="invalid_type")
    if item.get("type") != "function":
        raise wrong(f"{name}.type", item.get("type"), '"function"')
    function = item.get("function")
    if not isinstance(function, dict):
        raise wrong(f"{name}.function", function, "an object with the name of the function", code="invalid_type")
    if not isinstance(function.get("name"), str) or not function["name"]:
        raise wrong(f"{name}.function.name", function.get("name"), "the name of the function", code="invalid_type")
    return function
