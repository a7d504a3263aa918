"""Blocks of decoded rows of one log, and what the rows say one by one."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from batchspec.errors import RequestError
from batchspec.files.decode import decode_row
from batchspec.files.source import InputSource
from batchspec.files.wording import describe
from batchspec.ingest.faults import RowFault
from batchspec.ingest.lines import line_blocks
from batchspec.ingest.responses import Entry, Envelope, skipped
from batchspec.ingest.rows import envelope_of, read_body, read_row
from batchspec.ingest.streams import OpenStreams

__all__ = ["Event", "Log", "Row"]

_EVENT = b"data:"
_OTHER_EVENT_FIELDS = (b":", b"event:", b"id:", b"retry:")
_DONE = b"[DONE]"
_PARQUET_ROWS = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A chunk of a server's event stream; None for the ``[DONE]`` that ends one."""

    chunk: Any


Row = tuple[int, Any]
"""1-based line or row, and what it holds: decoded JSON, an ``Event``, or a ``RowFault``."""


class Log:
    """One log, read once from its beginning to its end.

    Args:
        path: as it was named.
        source: the file itself.
    """

    def __init__(self, *, path: str, source: InputSource):
        self.path = path
        self._source = source
        self._streams = OpenStreams()

    @property
    def file(self) -> str:
        """The file itself, where ``path`` names a run directory."""
        return self._source.path

    def blocks(self) -> Iterator[list[Row]]:
        """Yield the rows, some at a time; blank lines are left out.

        Raises:
            DamagedInputError: the file is truncated or corrupt; raised where that shows.
        """
        if not self._source.is_parquet:
            yield from (_decoded(number, lines) for number, lines in line_blocks(self._source))
            return
        rows = ((line, _content(content)) for line, content in self._source.rows())
        while block := list(islice(rows, _PARQUET_ROWS)):
            yield block

    def entries(self, rows: list[Row]) -> Iterator[Entry]:
        """Yield what some rows say; a stream's chunks give an entry where the stream is over."""
        for line, content in rows:
            if isinstance(content, RowFault):
                yield skipped(Envelope(path=self.path, line=line), content)
            elif isinstance(content, Event):
                yield from self._event(content, line=line)
            else:
                yield from read_row(content, path=self.path, line=line, streams=self._streams)

    def last_entries(self) -> Iterator[Entry]:
        """Yield what the log's end leaves open."""
        for began, body in self._streams.end():
            yield from read_body(body, envelope_of(body, path=self.path, line=began))

    def _event(self, event: Event, *, line: int) -> Iterator[Entry]:
        if event.chunk is None:
            ended = self._streams.done()
        elif isinstance(event.chunk, dict):
            ended = self._streams.add(event.chunk, line=line)
        else:  # SGLang's list of responses, which is no chunk
            ended = iter([(line, event.chunk)])
        for began, body in ended:
            yield from read_body(body, envelope_of(body, path=self.path, line=began))


def _content(content: Any) -> Any:
    return RowFault(content.message) if isinstance(content, RequestError) else content


def _decoded(number: int, lines: list[bytes | None]) -> list[Row]:
    """Return the rows of a block of lines, one by one only where a line is no JSON."""
    try:
        return list(enumerate(map(orjson.loads, lines), number))  # type: ignore[arg-type]  # as below
    except orjson.JSONDecodeError:
        return _decoded_with_care(number, lines)


def _decoded_with_care(number: int, lines: list[bytes | None]) -> list[Row]:
    rows: list[Row] = []
    for line, data in enumerate(lines, number):
        try:
            rows.append((line, orjson.loads(data)))  # type: ignore[arg-type]  # None is refused as any other non-JSON
        except orjson.JSONDecodeError:
            rows.extend((line, content) for content in _no_json(data))
    return rows


def _no_json(data: bytes | None) -> Iterator[Any]:
    """Yield what a line holds that is no JSON: nothing if it is blank or names an event, an event, or a fault."""
    content = b"" if data is None else data.strip()
    if data is not None and (not content or content.startswith(_OTHER_EVENT_FIELDS)):
        return
    if content.startswith(_EVENT):
        content = content.removeprefix(_EVENT).strip()
        if content == _DONE:
            yield Event(chunk=None)
            return
        try:
            yield Event(chunk=orjson.loads(content))
        except orjson.JSONDecodeError:
            yield _fault(content)
    else:
        yield _fault(data)


def _fault(data: bytes | None) -> RowFault:
    """Return what is wrong with a line that is no JSON."""
    try:
        return RowFault(f"the line is {describe(decode_row(data))}")
    except RequestError as error:
        return RowFault(error.message)
