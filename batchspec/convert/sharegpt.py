"""ShareGPT: conversations of people with assistants, as one JSON array or one entry a line."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from batchspec.convert.asked import Asked, given_id, left_out
from batchspec.errors import RequestError
from batchspec.files.fields import required, wrong
from batchspec.files.identity import read_category
from batchspec.files.wording import shown

__all__ = ["sharegpt_conversation"]

_ROLES = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "assistant": "assistant",
}


def sharegpt_conversation(row: Mapping[str, Any], *, number: int, is_first_turn: bool) -> Asked:
    """Return a chat that ends with the last question, the recorded answers before it included; the last is asked for.

    Args:
        row: ``{"id", "conversations": [{"from", "value"}, …]}``.
        number: its place in the file.
        is_first_turn: end with the first question instead, as vLLM's benchmarks do.

    Raises:
        RequestError: the row has no conversation, nobody asks in it, or a message is not understood.
    """
    conversation = row.get("conversations")
    if not isinstance(conversation, list) or not conversation:
        raise required(row, "conversations", "an array of messages", code="invalid_type")
    messages = tuple(_message(item, name=f"conversations[{i}]") for i, item in enumerate(conversation))
    questions = [i for i, message in enumerate(messages) if message["role"] == "user"]
    if not questions:
        raise wrong("conversations", conversation, 'at least one message from "human"')
    first = questions[0]
    if is_first_turn:
        system = takewhile(lambda message: message["role"] == "system", messages)
        asked: tuple[Mapping[str, str], ...] = (*system, messages[first])
    else:
        asked = messages[: questions[-1] + 1]
    return Asked(
        custom_id=given_id(row, "id", number=number),
        category=read_category(row),
        messages=asked,
        left_out=left_out(row, "id", "category", "conversations"),
    )


def _message(item: Any, *, name: str) -> dict[str, str]:
    if not isinstance(item, dict):
        raise wrong(name, item, 'an object with "from" and "value"', code="invalid_type")
    speaker, text = item.get("from"), item.get("value")
    if not isinstance(speaker, str) or speaker not in _ROLES:
        known = ", ".join(map(shown, _ROLES))
        raise RequestError(f'"{name}.from" is {shown(speaker)}: one of {known} is understood', param=f"{name}.from")
    if not isinstance(text, str):
        raise wrong(f"{name}.value", text, "a string", code="invalid_type")
    return {"role": _ROLES[speaker], "content": text}
