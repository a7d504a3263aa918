"""What a row asks, apart from how it is sampled: its endpoint, its prompts and its turns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.identity import Columns
from batchspec.files.prompts import parse_chat, parse_prompt, parse_turns
from batchspec.files.wording import listed, shown
from batchspec.request import Endpoint, Prompt

__all__ = ["Content", "bare_content", "batch_content"]


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a row asks; fields as in Request."""

    endpoint: Endpoint
    prompts: tuple[Prompt, ...]
    turns: tuple[str, ...] = ()


def batch_content(row: Mapping[str, Any], body: Mapping[str, Any]) -> Content:
    """Return what a batch line asks of the endpoint in its ``url``.

    Raises:
        RequestError: the body lacks the endpoint's prompt, has the other one's, or its own is malformed.
    """
    endpoint = Endpoint(row["url"])
    name, other = ("messages", "prompt") if endpoint is Endpoint.CHAT else ("prompt", "messages")
    if body.get(name) is None:
        raise RequestError(
            f'"{name}" is missing from "body": {endpoint} needs it', param=name, code="missing_required_parameter"
        )
    if body.get(other) is not None:
        raise RequestError(f'"{other}" does not belong to {endpoint}: remove it or change "url"', param=other)
    if endpoint is Endpoint.CHAT:
        return Content(endpoint=endpoint, prompts=(parse_chat(body[name]),))
    return Content(endpoint=endpoint, prompts=parse_prompt(body[name]))


def bare_content(row: Mapping[str, Any], *, columns: Columns) -> Content:
    """Return what a bare row asks: a completion of its prompt, or a chat of its messages or turns.

    Raises:
        RequestError: the row has none of these or several, or the one that it has is malformed.
    """
    given = [name for name, value in row.items() if value is not None]
    wanted = ("prompt", "messages", "turns") if columns.prompt is None else (columns.prompt,)
    names = [name for name in wanted if name in given]
    if len(names) > 1:
        raise RequestError(f"the row has {listed(names)}: keep one, or choose it with --prompt-column", param=names[1])
    if not names and "response" in given:
        raise RequestError(
            "the row is a response, not a request: read responses with batchspec report, or give the file that they "
            "answer",
            param="response",
        )
    if not names:
        raise RequestError(
            f"the row has no {' or '.join(map(shown, wanted))} (it has {listed(given) or 'nothing'}): add it, or name"
            " the column that holds the prompt with --prompt-column",
            param=wanted[0],
            code="missing_required_parameter",
        )
    name = names[0]
    value = row[name]
    if name == "turns":
        chat, turns = parse_turns(value)
        return Content(endpoint=Endpoint.CHAT, prompts=(chat,), turns=turns)
    if name == "messages" or (isinstance(value, list) and value and isinstance(value[0], dict)):
        return Content(endpoint=Endpoint.CHAT, prompts=(parse_chat(value, name=name),))
    return Content(endpoint=Endpoint.COMPLETIONS, prompts=parse_prompt(value, name=name))
