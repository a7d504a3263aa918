"""What a row of a neighbour's file asks, and the line of ours that asks the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.files.identity import Columns, read_custom_id
from batchspec.request import Endpoint

__all__ = ["Asked", "batch_line", "given_id", "left_out"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request; exactly one of ``prompt``, ``messages`` and ``turns`` is given.

    Attributes:
        custom_id: the row's own name; None when it has none.
        category: the row's own category.
        prompt: text to complete.
        messages: a chat, in OpenAI's form.
        turns: questions of a conversation, to be asked one after another.
        left_out: names of the row's fields that have no place in a request.
    """

    custom_id: str | None = None
    category: str | None = None
    prompt: str | None = None
    messages: tuple[Mapping[str, str], ...] = ()
    turns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def batch_line(asked: Asked, *, custom_id: str) -> dict[str, Any]:
    """Return an OpenAI batch line; for several turns, which OpenAI's form does not have, a row that ``run`` plays.

    Args:
        asked: the request.
        custom_id: its name, which no other line has.
    """
    line: dict[str, Any] = {"custom_id": custom_id}
    if asked.category is not None:
        line["category"] = asked.category
    if len(asked.turns) > 1:
        return line | {"turns": list(asked.turns)}
    if asked.prompt is not None:
        return line | {"method": "POST", "url": str(Endpoint.COMPLETIONS), "body": {"prompt": asked.prompt}}
    messages = [dict(message) for message in asked.messages]
    messages += [{"role": "user", "content": turn} for turn in asked.turns]
    return line | {"method": "POST", "url": str(Endpoint.CHAT), "body": {"messages": messages}}


def given_id(row: Mapping[str, Any], name: str, *, number: int) -> str | None:
    """Return the id in a field of the row as text, None when it is not given.

    Raises:
        RequestError: it is neither text nor an integer.
    """
    if row.get(name) is None:
        return None
    return read_custom_id(row, line=number, columns=Columns(id=name), is_batch=False)


def left_out(row: Mapping[str, Any], *taken: str) -> tuple[str, ...]:
    """Return the names of the fields that hold something and were not taken."""
    return tuple(name for name, value in row.items() if value is not None and name not in taken)
