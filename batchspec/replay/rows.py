"""The rows of a log as whole responses: whatever stands around one, and the chunks of a stream put together."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from batchspec.errors import RequestError
from batchspec.files.decode import decode_row
from batchspec.files.source import Row
from batchspec.ingest.streams import OpenStreams, Stream, is_chunk
from batchspec.replay.choices import Unfit
from batchspec.replay.recorded import Cause

__all__ = ["LogRow", "whole_rows"]

_NESTED = ("response", "error", "sampling")  # kept as JSON text in Parquet files
_EVENT, _OTHER_EVENT_FIELDS = b"data:", (b":", b"event:", b"id:", b"retry:")
_DONE = "[DONE]"
_BESIDE = ("custom_id", "category", "error")


@dataclass(frozen=True, kw_only=True, slots=True)
class LogRow:
    """One response.

    Attributes:
        body: one object, or the chunks of a stream.
        outer: the line around it; the body itself where there is none.
        is_error: whether the request was not served.
    """

    body: Any
    outer: Mapping[str, Any]
    is_error: bool

    @classmethod
    def of(cls, outer: Mapping[str, Any]) -> "LogRow":
        """Return the response in a line."""
        response = outer.get("response", outer)
        if isinstance(response, list):
            return cls(body=_chunks_in(response), outer=outer, is_error=bool(outer.get("error")))
        if not isinstance(response, dict):
            return cls(body=None, outer=outer, is_error=bool(outer.get("error")))
        body = _chunks_in(response.get("body", response))
        is_error = bool(outer.get("error")) or response.get("status_code") not in (200, None)
        return cls(body=body, outer=outer, is_error=is_error or (isinstance(body, dict) and bool(body.get("error"))))

    @classmethod
    def of_stream(cls, chunks: list[dict[str, Any]]) -> "LogRow":
        """Return the response that chunks make which stand in rows of their own."""
        outer = {name: chunk[name] for chunk in chunks for name in _BESIDE if chunk.get(name) is not None}
        return cls(body=chunks, outer={"custom_id": chunks[0].get("id")} | outer, is_error=bool(outer.get("error")))

    @property
    def custom_id(self) -> str | None:
        """The request's name; that of the response where there is none."""
        inner = self.body.get("id") if isinstance(self.body, dict) else None
        found = self.outer.get("custom_id", inner)
        return found if isinstance(found, str) else None

    @property
    def sampling(self) -> Mapping[str, Any] | None:
        """What our own records tell of the request; None in those of others."""
        found = self.outer.get("sampling")
        return found if isinstance(found, dict) else None

    @property
    def has_turns(self) -> bool:
        """Whether several choices are the turns of a conversation: in our own records, unless it asked for samples."""
        return self.sampling is not None and self.sampling.get("n", 1) == 1


class _Chunks(Stream):
    """A stream whose chunks are kept as they came."""

    __slots__ = ("_chunks",)

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self._chunks: list[Mapping[str, Any]] = []

    def add(self, chunk: Mapping[str, Any]) -> None:
        super().add(chunk)
        self._chunks.append(chunk)

    def body(self) -> Any:
        return self._chunks


def whole_rows(rows: Iterable[Row]) -> Iterator[tuple[int, LogRow | Unfit]]:
    """Yield (line, response) of every row, or what is wrong with it; a stream where it is over, by its first line.

    Args:
        rows: of a log, as ``InputSource.rows`` yields them.
    """
    streams = OpenStreams(_Chunks)
    for line, content in rows:
        try:
            whole, ended = _taken(content, streams, line=line)
        except Unfit as unfit:
            yield line, unfit
            continue
        yield from ((began, LogRow.of_stream(chunks)) for began, chunks in ended)
        if whole is not None:
            yield line, whole
    yield from ((began, LogRow.of_stream(chunks)) for began, chunks in streams.end())


def _taken(content: Any, streams: OpenStreams, *, line: int) -> tuple[LogRow | None, Iterable[tuple[int, Any]]]:
    """Return the response that a row holds, and the streams that end with it; Unfit for a row that holds none."""
    text = content.strip() if isinstance(content, bytes) else b""
    if text.startswith(_OTHER_EVENT_FIELDS):
        return None, ()
    is_event = text.startswith(_EVENT)
    if is_event:
        content = text.removeprefix(_EVENT).strip()
        if content == _DONE.encode():
            return None, streams.done()
    outer = _decoded(content)
    if isinstance(outer, list):
        return LogRow(body=_chunks_in(outer), outer={}, is_error=False), ()
    if is_event or ("response" not in outer and (is_chunk(outer) or outer in streams)):
        return None, streams.add(outer, line=line)
    return LogRow.of(outer), ()


def _decoded(content: Any) -> Any:
    """Return the object or the list that a line or a Parquet row holds; Unfit if there is none."""
    try:
        if isinstance(content, RequestError):
            raise content
        if isinstance(content, dict):
            return {name: _unpacked(value) if name in _NESTED else value for name, value in content.items()}
        if content is not None and content.lstrip().startswith(b"["):
            return orjson.loads(content)
        return decode_row(content)
    except (RequestError, orjson.JSONDecodeError):
        raise Unfit(Cause.MALFORMED) from None


def _unpacked(value: Any) -> Any:
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return value


def _chunks_in(body: Any) -> Any:
    """Return a body; of a stream the chunks alone, be they a list or text as a server sends it."""
    if isinstance(body, str):
        lines = (line[len(_EVENT) :].strip() for line in body.splitlines() if line.startswith(_EVENT.decode()))
        body = [line if line == _DONE else _unpacked(line) for line in lines]
    return [chunk for chunk in body if chunk != _DONE] if isinstance(body, list) else body
