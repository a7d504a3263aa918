"""From one row of a log, whatever stands around the response, to its records."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from batchspec.files.wording import describe
from batchspec.ingest.faults import RowFault
from batchspec.ingest.record import SkipReason
from batchspec.ingest.responses import Entry, Envelope, read_response, skipped
from batchspec.ingest.streams import OpenStreams, is_chunk, is_one_stream, merge_chunks

__all__ = ["envelope_of", "read_body", "read_row"]

_IDS = ("id", "request_id", "question_id")
_LONGEST_MESSAGE = 200
_DONE = "[DONE]"


def read_row(row: Any, *, path: str, line: int, streams: OpenStreams) -> Iterator[Entry]:
    """Yield the records of a row; a chunk of a stream yields them where the stream is over.

    Args:
        row: decoded JSON, or a row of Parquet.
        path: the log, as it was named.
        line: 1-based line or row.
        streams: of this log, which takes chunks in.
    """
    if type(row) is dict and "response" not in row and (is_chunk(row) or row in streams):
        for began, body in streams.add(row, line=line):
            yield from read_body(body, envelope_of(body, path=path, line=began))
        return
    envelope = envelope_of(row, path=path, line=line)
    try:
        body = _inside(row)
    except RowFault as fault:
        yield skipped(envelope, fault)
    else:
        yield from read_body(body, envelope)


def read_body(body: Any, envelope: Envelope) -> Iterator[Entry]:
    """Yield the records of a body: a response, the chunks of one, or a list of responses, as SGLang's to ``n`` > 1."""
    if type(body) is list and _DONE in body:
        body = [item for item in body if item != _DONE]
    if type(body) is list and body and all(type(item) is dict for item in body):
        if is_one_stream(body):
            body = merge_chunks(body)
        else:
            for item in body:
                yield from read_body(item, envelope)
            return
    if type(body) is not dict:
        yield skipped(envelope, RowFault(f"the response is {describe(body)}, not an object"))
        return
    if envelope.custom_id is None:
        envelope = _identified(envelope, body)
    fault = _error(body)
    if fault is not None:
        yield skipped(envelope, fault)
    else:
        yield from read_response(body, envelope)


def envelope_of(row: Any, *, path: str, line: int) -> Envelope:
    """Return what a row says of itself, be it a batch line or not."""
    if type(row) is not dict:
        return Envelope(path=path, line=line)
    custom_id, category = row.get("custom_id"), row.get("category")
    return Envelope(
        path=path,
        line=line,
        custom_id=custom_id if type(custom_id) is str else None,
        category=category if type(category) is str else None,
    )


def _identified(envelope: Envelope, body: Mapping[str, Any]) -> Envelope:
    """Return the envelope with the first of the body's own ids."""
    found = next((body[name] for name in _IDS if type(body.get(name)) in (str, int)), None)
    if found is None:
        return envelope
    return Envelope(path=envelope.path, line=envelope.line, custom_id=str(found), category=envelope.category)


def _inside(row: Any) -> Any:
    """Return the body of a batch line, or the row itself where nothing stands around the response.

    Raises:
        RowFault: the line reports an error, or holds no response.
    """
    if type(row) is not dict or ("response" not in row and "body" not in row):
        return row
    if row.get("error"):
        raise _reported(_decoded(row["error"]), status=None)
    response = _decoded(row.get("response"))
    if type(response) is list:
        return response
    if type(response) is not dict:
        if "body" in row:
            return _decoded(row["body"])
        raise RowFault(f'"response" must be an object, not {describe(response)}, in a line without "error"')
    status = response.get("status_code")
    body = _decoded(response.get("body")) if "body" in response else response
    if status is not None and status != 200:
        raise _reported(body.get("error") if type(body) is dict else None, status=status)
    return body


def _decoded(value: Any) -> Any:
    """Return a value that is kept as text, as Parquet has it: JSON, or a stream's lines.

    Raises:
        RowFault: the text is neither.
    """
    if type(value) is not str:
        return value
    if value.startswith("data:"):
        lines = [line[5:].strip() for line in value.splitlines() if line.startswith("data:")]
        return [_decoded(line) for line in lines if line != _DONE]
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise RowFault(f"the response is {describe(value)}, which is not JSON") from error


def _error(body: Mapping[str, Any]) -> RowFault | None:
    """Return what a body reports instead of a response; None for a response."""
    if body.get("error"):
        return _reported(body["error"], status=None)
    return _reported(body, status=None) if body.get("object") == "error" else None


def _reported(error: Any, *, status: Any) -> RowFault:
    """Return the fault of a request that was not served, in the words of its error."""
    described = error if type(error) is dict else {}
    message = described.get("message", error if type(error) is str else None)
    code = described.get("code")
    return RowFault(
        " ".join(str(message or "the request was not served").split())[:_LONGEST_MESSAGE],
        reason=SkipReason.ERROR,
        code=str(next((name for name in (code, status) if name is not None), "error")),
    )
