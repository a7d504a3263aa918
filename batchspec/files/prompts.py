"""The prompts of a request: completion prompts, chats and the turns of a conversation."""

from typing import Any

from batchspec.files.fields import token_ids, wrong
from batchspec.files.messages import parse_messages
from batchspec.request import ChatPrompt, Prompt, TextPrompt, TokenPrompt

__all__ = ["parse_chat", "parse_prompt", "parse_turns"]

_PROMPT = "a string, an array of strings, an array of token ids or an array of arrays of token ids"


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


def parse_chat(value: Any, *, name: str = "messages") -> ChatPrompt:
    """Return the chat that an array of messages makes.

    Raises:
        RequestError: as ``parse_messages``.
    """
    return ChatPrompt(messages=parse_messages(value, name=name))


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
