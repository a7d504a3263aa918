"""The messages of a chat, checked one by one."""

from typing import Any

import orjson

from batchspec.errors import RequestError
from batchspec.files.fields import wrong
from batchspec.files.functions import parse_function
from batchspec.files.wording import describe, listed, shown

__all__ = ["parse_messages"]

_MESSAGES = 'an array of messages, as in [{"role": "user", "content": "Hello"}]'
_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id")
_ARGUMENTS = "an object, or the JSON text of one"


def parse_messages(value: Any, *, name: str = "messages") -> tuple[dict[str, Any], ...]:
    """Return the messages; the content of every one is one string, text parts joined by newlines, or None beside calls.

    The arguments of tool calls become objects, which is what templates expect.

    Raises:
        RequestError: a message is malformed, or holds something other than text and tool calls.
    """
    if not isinstance(value, list) or not value:
        raise wrong(name, value, _MESSAGES, code=None if value == [] else "invalid_type")
    return tuple(_message(item, name=f"{name}[{i}]") for i, item in enumerate(value))


def _message(message: Any, *, name: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise wrong(name, message, 'an object, as in {"role": "user", "content": "Hello"}', code="invalid_type")
    for key, value in message.items():
        if key not in _KEYS and value not in (None, []):
            raise RequestError(
                f"{shown(f'{name}.{key}')} is not supported yet (found {describe(value)}): "
                f"give {listed(list(_KEYS))} only",
                param=f"{name}.{key}",
                code="unsupported_parameter",
            )
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise wrong(f"{name}.role", role, 'a role such as "user"', code="invalid_type")
    calls = _tool_calls(message.get("tool_calls"), name=f"{name}.tool_calls")
    content = message.get("content")
    is_silent = content is None and bool(calls)
    parsed = {"role": role, "content": None if is_silent else _content(content, name=f"{name}.content")}
    for key in ("name", "tool_call_id"):
        value = message.get(key)
        if value is not None and not isinstance(value, str):
            raise wrong(f"{name}.{key}", value, "a string", code="invalid_type")
        parsed |= {} if value is None else {key: value}
    return parsed | {"tool_calls": calls} if calls else parsed


def _content(content: Any, *, name: str) -> str:
    """Return the text of a message's content."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise wrong(name, content, "a string or an array of text parts", code="invalid_type")
    return "\n".join(_part(part, name=f"{name}[{i}]") for i, part in enumerate(content))


def _part(part: Any, *, name: str) -> str:
    """Return the text of one content part."""
    if not isinstance(part, dict):
        raise wrong(name, part, 'a text part, as in {"type": "text", "text": "Hello"}', code="invalid_type")
    if part.get("type") != "text":
        raise RequestError(
            f'"{name}.type" is {describe(part.get("type"))}, which is not supported yet: give "text" parts only',
            param=f"{name}.type",
            code="unsupported_parameter",
        )
    text = part.get("text")
    if not isinstance(text, str):
        raise wrong(f"{name}.text", text, "a string", code="invalid_type")
    return text


def _tool_calls(value: Any, *, name: str) -> list[dict[str, Any]]:
    """Return the calls of one message, none for null."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(name, value, "an array of tool calls", code="invalid_type")
    return [_tool_call(call, name=f"{name}[{i}]") for i, call in enumerate(value)]


def _tool_call(call: Any, *, name: str) -> dict[str, Any]:
    """Return one call with its arguments as an object; no arguments at all are an empty one."""
    function = parse_function(call, name=name)
    if call.get("id") is not None and not isinstance(call["id"], str):
        raise wrong(f"{name}.id", call["id"], "a string", code="invalid_type")
    arguments = _arguments(function.get("arguments"), name=f"{name}.function.arguments")
    return {**call, "function": function | {"arguments": arguments}}


def _arguments(value: Any, *, name: str) -> dict[str, Any]:
    parsed = value
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            parsed = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise wrong(name, value, _ARGUMENTS) from error
    if not isinstance(parsed, dict):
        raise wrong(name, value, _ARGUMENTS, code="invalid_type")
    return parsed
