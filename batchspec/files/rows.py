"""One row of input, a batch line or a bare row, to one Request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.fields import required, text, wrong
from batchspec.files.identity import Columns, read_category, read_custom_id
from batchspec.files.parameters import HONOURED, OFF_VALUES, check_known, check_unsupported
from batchspec.files.prompts import parse_messages, parse_prompt, parse_turns
from batchspec.files.sampling_fields import RowDefaults, parse_sampling
from batchspec.files.wording import listed, shown
from batchspec.request import Endpoint, Prompt, Request

__all__ = ["parse_row"]


@dataclass(frozen=True, kw_only=True)
class _Content:
    """What a row asks, apart from how it is sampled."""

    endpoint: Endpoint
    prompts: tuple[Prompt, ...]
    turns: tuple[str, ...] = ()


def parse_row(row: Mapping[str, Any], *, index: int, line: int, columns: Columns, defaults: RowDefaults) -> Request:
    """Return the request that a row makes; fields that are null count as not given.

    Args:
        row: a batch line (``custom_id``, ``method``, ``url``, ``body``) or a bare row (a prompt, messages or turns).
        index: 0-based ordinal of the row.
        line: its 1-based number, which names a bare row without an id.
        columns: where a bare row keeps its prompt and its id, if not under the usual names.
        defaults: for sampling fields that the row does not give.

    Raises:
        RequestError: the row cannot be served; the sentence names the field, the value and what would be right.
    """
    is_batch = _is_batch_line(row, columns=columns)
    custom_id = read_custom_id(row, line=line, columns=columns, is_batch=is_batch)
    category = read_category(row)
    fields = _body(row) if is_batch else _bare_fields(row, columns=columns)
    check_unsupported(fields)
    if is_batch:
        check_known(fields)
    content = _batch_content(row, fields) if is_batch else _bare_content(row, columns=columns)
    sampling = parse_sampling(fields, endpoint=content.endpoint, custom_id=custom_id, defaults=defaults)
    if content.turns and sampling.n > 1:
        raise wrong("n", sampling.n, '1 (or leave it out) in a row with several "turns"')
    return Request(
        index=index,
        line=line,
        custom_id=custom_id,
        endpoint=content.endpoint,
        prompts=content.prompts,
        turns=content.turns,
        sampling=sampling,
        category=category,
        model=text(fields, "model"),
    )


def _is_batch_line(row: Mapping[str, Any], *, columns: Columns) -> bool:
    """Whether the row has a batch line's own fields; a prompt column that the user named decides against it."""
    if columns.prompt is not None and columns.prompt in row:
        return False
    return any(row.get(name) is not None for name in ("body", "url", "method"))


def _body(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a batch line's body after the fields around it were checked."""
    if row.get("method") != "POST":
        raise required(row, "method", '"POST"', code="invalid_method")
    if row.get("url") not in list(Endpoint):
        remedy = " or ".join(shown(str(endpoint)) for endpoint in Endpoint)
        raise required(row, "url", remedy, code="invalid_url")
    body = row.get("body")
    if not isinstance(body, dict):
        raise required(row, "body", "an object with the request's parameters", code="invalid_type")
    for name, value in row.items():
        if value is not None and (name in HONOURED or name in OFF_VALUES):
            raise RequestError(f'"{name}" stands beside "body" (found {shown(value)}): move it into "body"', param=name)
    return body


def _batch_content(row: Mapping[str, Any], body: Mapping[str, Any]) -> _Content:
    endpoint = Endpoint(row["url"])
    name, other = ("messages", "prompt") if endpoint is Endpoint.CHAT else ("prompt", "messages")
    if body.get(name) is None:
        raise RequestError(
            f'"{name}" is missing from "body": {endpoint} needs it', param=name, code="missing_required_parameter"
        )
    if body.get(other) is not None:
        raise RequestError(f'"{other}" does not belong to {endpoint}: remove it or change "url"', param=other)
    if endpoint is Endpoint.CHAT:
        return _Content(endpoint=endpoint, prompts=(parse_messages(body[name]),))
    return _Content(endpoint=endpoint, prompts=parse_prompt(body[name]))


def _bare_fields(row: Mapping[str, Any], *, columns: Columns) -> Mapping[str, Any]:
    """Return the parameters among a bare row's columns; the prompt's and the id's own columns are none of them."""
    fields = {name: value for name, value in row.items() if name not in (columns.prompt, columns.id)}
    if not isinstance(fields.get("model"), str):
        fields.pop("model", None)
    return fields


def _bare_content(row: Mapping[str, Any], *, columns: Columns) -> _Content:
    given = [name for name, value in row.items() if value is not None]
    wanted = ("prompt", "messages", "turns") if columns.prompt is None else (columns.prompt,)
    names = [name for name in wanted if name in given]
    if len(names) > 1:
        raise RequestError(f"the row has {listed(names)}: keep one, or choose it with --prompt-column", param=names[1])
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
        return _Content(endpoint=Endpoint.CHAT, prompts=(chat,), turns=turns)
    if name == "messages" or (isinstance(value, list) and value and isinstance(value[0], dict)):
        return _Content(endpoint=Endpoint.CHAT, prompts=(parse_messages(value, name=name),))
    return _Content(endpoint=Endpoint.COMPLETIONS, prompts=parse_prompt(value, name=name))
