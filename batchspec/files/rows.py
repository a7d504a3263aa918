"""One row of input, a batch line or a bare row, to one Request."""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.content import bare_content, batch_content
from batchspec.files.defaults import RowDefaults
from batchspec.files.fields import flag, required, text, wrong
from batchspec.files.identity import Columns, read_category, read_custom_id
from batchspec.files.length_fields import parse_truncation
from batchspec.files.output_fields import parse_streaming
from batchspec.files.parameters import HONOURED, OFF_VALUES
from batchspec.files.rendering_fields import apply_rendering
from batchspec.files.sampling_fields import parse_sampling
from batchspec.files.support import check_endpoint, check_known, check_unsupported
from batchspec.files.wording import shown
from batchspec.request import Endpoint, Request

__all__ = ["is_batch_line", "parse_row"]


def parse_row(row: Mapping[str, Any], *, index: int, line: int, columns: Columns, defaults: RowDefaults) -> Request:
    """Return the request that a row makes; fields that are null count as not given.

    Args:
        row: a batch line (``custom_id``, ``method``, ``url``, ``body``) or a bare row (a prompt, messages or turns).
        index: 0-based ordinal of the row.
        line: its 1-based number, which names a bare row without an id.
        columns: where a bare row keeps its prompt and its id, if not under the usual names.
        defaults: for fields that the row does not give.

    Raises:
        RequestError: the row cannot be served; the sentence names the field, the value and what would be right.
    """
    is_batch = is_batch_line(row, columns=columns)
    custom_id = read_custom_id(row, line=line, columns=columns, is_batch=is_batch)
    category = read_category(row)
    fields = _body(row) if is_batch else _bare_fields(row, columns=columns)
    check_unsupported(fields)
    if is_batch:
        check_known(fields)
    content = batch_content(row, fields) if is_batch else bare_content(row, columns=columns)
    check_endpoint(fields, endpoint=content.endpoint)
    sampling = parse_sampling(fields, endpoint=content.endpoint, custom_id=custom_id, defaults=defaults)
    prompts = apply_rendering(content.prompts, fields)
    if content.turns:
        _check_turns(fields)
    is_stream, include_usage = parse_streaming(fields, defaults=defaults)
    return Request(
        index=index,
        line=line,
        custom_id=custom_id,
        endpoint=content.endpoint,
        prompts=prompts,
        turns=content.turns,
        sampling=sampling,
        category=category,
        model=text(fields, "model"),
        echo=flag(fields, "echo") or False,
        truncate_prompt_tokens=parse_truncation(fields),
        stream=is_stream,
        include_usage=include_usage,
    )


def is_batch_line(row: Mapping[str, Any], *, columns: Columns) -> bool:
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


def _bare_fields(row: Mapping[str, Any], *, columns: Columns) -> Mapping[str, Any]:
    """Return the parameters among a bare row's columns; the prompt's and the id's own columns are none of them."""
    fields = {name: value for name, value in row.items() if name not in (columns.prompt, columns.id)}
    if not isinstance(fields.get("model"), str):
        fields.pop("model", None)
    return fields


def _check_turns(fields: Mapping[str, Any]) -> None:
    """Raise RequestError for what cannot be asked of a conversation: several answers to a turn, or none of its own."""
    for name, right in {"n": 1, "continue_final_message": False}.items():
        value = fields.get(name)
        if value is not None and value != right:
            raise wrong(name, value, f'{shown(right)} (or leave it out) in a row with several "turns"')
