"""Logs of any mix of engines as neutral records, in constant memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from batchspec.errors import RequestError, UsageError
from batchspec.files.decode import decode_row
from batchspec.files.source import InputSource, open_source
from batchspec.ingest.faults import RowFault
from batchspec.ingest.responses import Entry, Envelope, skipped
from batchspec.ingest.rows import read_body, read_row
from batchspec.ingest.streams import OpenStreams

__all__ = ["read_logs"]

_RESPONSES = "responses.jsonl"
_EVENT = b"data:"
_OTHER_EVENT_FIELDS = (b":", b"event:", b"id:", b"retry:")


def read_logs(paths: Sequence[str | Path]) -> Iterator[Entry]:
    """Return an iterator over what the rows of the logs say, file by file, in the order of the rows.

    A row is a plain body, a batch line around one, a chunk of a streamed response (bare, or behind ``data:``), or a
    benchmark's answer; ``.jsonl``, also ``.gz`` and ``.zst``, or ``.parquet``. A streamed response gives one record
    where it ends. A row that cannot be believed comes as a ``SkippedRow`` and is never repaired.

    Args:
        paths: files, run directories (their ``responses.jsonl``), or ``-`` for standard input.

    Raises:
        UsageError: a path is missing or not what its extension says; raised before anything is read.
        DamagedInputError: a file is truncated or corrupt; raised where that shows.
    """
    logs = [(str(path), open_source(_file(path))) for path in paths]
    return (entry for path, source in logs for entry in _entries(path, source))


def _file(path: str | Path) -> str:
    """Return the path itself, or the responses in a run directory.

    Raises:
        UsageError: it is a directory without any.
    """
    if str(path) in ("", "-") or not Path(path).is_dir():
        return str(path)
    responses = Path(path) / _RESPONSES
    if not responses.is_file():
        raise UsageError(f"{path} is a directory without {_RESPONSES}: give a run directory or a file")
    return str(responses)


def _entries(path: str, source: InputSource) -> Iterator[Entry]:
    """Yield what one log says, its open streams at the end."""
    streams = OpenStreams()
    for line, content in source.rows():
        try:
            if type(content) is bytes and not content.startswith((b"{", b"[")):
                yield from _event(content, path=path, line=line, streams=streams)
            else:
                yield from read_row(_row(content), path=path, line=line, streams=streams)
        except RequestError as error:
            yield skipped(Envelope(path=path, line=line), RowFault(error.message))
    for began, body in streams.end():
        yield from read_body(body, Envelope(path=path, line=began))


def _row(content: bytes | dict[str, Any] | RequestError | None) -> Any:
    """Return what a row holds.

    Raises:
        RequestError: it is too long, or no JSON.
    """
    if isinstance(content, RequestError):
        raise content
    if type(content) is not bytes:
        return content if content is not None else decode_row(None)
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return decode_row(content)  # says what is wrong


def _event(content: bytes, *, path: str, line: int, streams: OpenStreams) -> Iterator[Entry]:
    """Yield what ends with a line of a server's event stream; the other fields of such a stream say nothing."""
    if not content.startswith(_EVENT):
        if not content.startswith(_OTHER_EVENT_FIELDS):
            yield from read_row(_row(content.strip()), path=path, line=line, streams=streams)
        return
    data = content.removeprefix(_EVENT).strip()
    ended = streams.done() if data == b"[DONE]" else _add(_row(data), line=line, streams=streams)
    for began, body in ended:
        yield from read_body(body, Envelope(path=path, line=began))


def _add(chunk: Any, *, line: int, streams: OpenStreams) -> Iterator[tuple[int, Any]]:
    """Take a chunk in; what is none, as SGLang's list of responses, is given back as a response of its own."""
    if type(chunk) is dict:
        yield from streams.add(chunk, line=line)
    else:
        yield line, chunk
