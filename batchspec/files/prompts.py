"""The prompts of a request: completion prompts, chat messages and the turns of a conversation."""

from typing import Any

from batchspec.errors import RequestError
from batchspec.files.fields import token_ids, wrong
from batchspec.files.wording import describe
from batchspec.request import ChatPrompt, Prompt, TextPrompt, TokenPrompt

__all__ = ["parse_messages", "parse_prompt", "parse_turns"]

_PROMPT = "a string, an array of strings, an array of token ids or an array of arrays of token ids"
_MESSAGES = 'an array of messages, as in [{"role": "user", "content": "Hello"}]'


def parse_prompt(value: Any, *, name: str = "prompt") -> tuple[Prompt, ...]:
    """Return one or more completion prompts.

    Raises:
        RequestError: the value is none of the four forms, or an array in it is empty.
    """
    if isinstance(value, str):
        return (TextPrompt(text=value),)
    if not isinstance(value, list) or not value:
        raise wrong(name, value, _PROMPT, code=None if value == [] else "invalid_type")
    if isinstance(value[0], int) and not isinstance(value[0], bool):
        return (TokenPrompt(token_ids=token_ids(value, name)),)
    return tuple(_one_of_several(item, name=f"{name}[{i}]", kind=type(value[0])) for i, item in enumerate(value))


def _one_of_several(item: Any, *, name: str, kind: type) -> Prompt:
    """Return one prompt of an array of prompts, all of which are of the same kind."""
    if kind is str and isinstance(item, str):
        return TextPrompt(text=item)
    if kind is list and isinstance(item, list) and item:
        return TokenPrompt(token_ids=token_ids(item, name))
    right: dict[type, str] = {str: "a string like the prompts before it", list: "an array of at least one token id"}
    raise wrong(name, item, right.get(kind, "a string, a token id or an array of token ids"), code="invalid_type")


def parse_messages(value: Any, *, name: str = "messages") -> ChatPrompt:
    """Return the chat; the content of every message is one string, text parts joined by newlines.

    Raises:
        RequestError: a message is malformed, or holds something other than text.
    """
    if not isinstance(value, list) or not value:
        raise wrong(name, value, _MESSAGES, code=None if value == [] else "invalid_type")
    return ChatPrompt(messages=tuple(_message(item, name=f"{name}[{i}]") for i, item in enumerate(value)))


def _message(message: Any, *, name: str) -> dict[str, str]:
    if not isinstance(message, dict):
        raise wrong(name, message, 'an object, as in {"role": "user", "content": "Hello"}', code="invalid_type")
    for key, value in message.items():
        if key not in ("role", "content", "name") and value not in (None, []):
            raise RequestError(
                f'"{name}.{key}" is not supported yet (found {describe(value)}): give "role" and "content" only',
                param=f"{name}.{key}",
                code="unsupported_parameter",
            )
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise wrong(f"{name}.role", role, 'a role such as "user"', code="invalid_type")
    parsed = {"role": role, "content": _content(message.get("content"), name=f"{name}.content")}
    author = message.get("name")
    if author is not None and not isinstance(author, str):
        raise wrong(f"{name}.name", author, "a string", code="invalid_type")
    return parsed if author is None else parsed | {"name": author}


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


def parse_turns(value: Any) -> tuple[ChatPrompt, tuple[str, ...]]:
    """Return the chat of the first turn, and the user messages that follow.

    Raises:
        RequestError: the value is not an array of strings, or is empty.
    """
    if not isinstance(value, list) or not value:
        raise wrong("turns", value, "an array of strings", code=None if value == [] else "invalid_type")
    for position, turn in enumerate(value):
        if not isinstance(turn, str):
            raise wrong(f"turns[{position}]", turn, "a string", code="invalid_type")
    return ChatPrompt(messages=({"role": "user", "content": value[0]},)), tuple(value[1:])
