"""Chunks of streamed responses, merged into what the server would have sent at once; texts are let go."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["OpenStreams", "Stream", "is_chunk", "is_one_stream", "merge_chunks"]

_CONTENT = frozenset({"delta", "message", "text", "logprobs", "token_ids", "content", "prompt_token_ids"})
_MAX_OPEN = 4096


def is_chunk(row: Mapping[str, Any]) -> bool:
    """Whether a bare row is a chunk of a stream and not a whole response, which tells its usage and has ended."""
    kind = row.get("object")
    if type(kind) is not str or type(row.get("id")) is not str or "choices" not in row:
        return False
    if kind != "text_completion":
        return kind.endswith(".chunk")
    return row.get("usage") is None or _is_unfinished(row["choices"])


def is_one_stream(rows: list[Any]) -> bool:
    """Whether rows of a list are the chunks of one response, and not responses."""
    return any("choices" in row for row in rows) and len({str(row.get("id")) for row in rows}) == 1


def _is_unfinished(choices: Any) -> bool:
    """Whether every choice, if there is any, says that it has not ended; one that says nothing of it may be whole."""
    return type(choices) is list and all(
        type(choice) is dict and choice.get("finish_reason", "unsaid") is None for choice in choices
    )


def merge_chunks(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one response: of every field the last value that is not null, the choices by their index."""
    merged: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        _merge(merged, choices, chunk)
    return merged | {"choices": list(choices.values())}


def _merge(merged: dict[str, Any], choices: dict[int, dict[str, Any]], chunk: Mapping[str, Any]) -> None:
    merged.update(
        (name, value)
        for name, value in chunk.items()
        if value is not None and name != "choices" and name not in _CONTENT
    )
    listed = chunk.get("choices")
    for choice in listed if type(listed) is list else ():
        if type(choice) is dict:
            told = {name: value for name, value in choice.items() if value is not None and name not in _CONTENT}
            index = choice.get("index")
            choices.setdefault(index if type(index) is int else 0, {}).update(told)


class Stream:
    """One response whose chunks are coming in; a subclass may keep more of them.

    Args:
        line: of the first chunk.
    """

    __slots__ = ("_choices", "_merged", "line")

    def __init__(self, line: int) -> None:
        self.line = line
        self._merged: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take the next chunk in."""
        _merge(self._merged, self._choices, chunk)

    @property
    def is_over(self) -> bool:
        """Whether nothing can follow: an error, or the last chunk of llama.cpp's own interface, which has no ids."""
        return self._merged.get("stop") is True or "error" in self._merged

    @property
    def is_finished(self) -> bool:
        """Whether every choice has told how it ended; numbers may still follow."""
        if self.is_over:
            return True
        return bool(self._choices) and all("finish_reason" in choice for choice in self._choices.values())

    def body(self) -> Any:
        """Return what the chunks make: one response."""
        return self._merged | {"choices": list(self._choices.values())}


class OpenStreams:
    """The streams of a log whose chunks may be interleaved; told apart by the chunks' ids.

    A stream is over where its last chunk says that nothing follows (``[DONE]``, or the end of the log), since the
    numbers come after the choices have ended. At most 4,096 are kept open, the finished ones given out first.

    Args:
        kind: what takes in the chunks of one of them.
    """

    def __init__(self, kind: type[Stream] = Stream) -> None:
        self._kind = kind
        self._streams: dict[str, Stream] = {}

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        return bool(self._streams) and bool(_key(row)) and _key(row) in self._streams

    def add(self, chunk: Mapping[str, Any], *, line: int) -> Iterator[tuple[int, Any]]:
        """Take a chunk in; yield (line of its first chunk, response) of a stream that is over or must make room."""
        key = _key(chunk)
        if key in self._streams and self._streams[key].is_over:
            yield self._close(key)
        self._streams.setdefault(key, self._kind(line)).add(chunk)
        if len(self._streams) > _MAX_OPEN:
            finished = (key for key, open_stream in self._streams.items() if open_stream.is_finished)
            yield self._close(next(finished, next(iter(self._streams))))

    def done(self) -> Iterator[tuple[int, Any]]:
        """Yield what a ``[DONE]`` ends: the finished streams, or the only one."""
        keys = [key for key, stream in self._streams.items() if stream.is_finished or len(self._streams) == 1]
        yield from map(self._close, keys)

    def end(self) -> Iterator[tuple[int, Any]]:
        """Yield whatever the log's end leaves open."""
        yield from map(self._close, list(self._streams))

    def _close(self, key: str) -> tuple[int, Any]:
        stream = self._streams.pop(key)
        return stream.line, stream.body()


def _key(chunk: Mapping[str, Any]) -> str:
    """Return the chunk's id; llama.cpp's and SGLang's own interfaces keep none, or keep it elsewhere."""
    meta = chunk.get("meta_info")
    return str(chunk.get("id") or (meta.get("id") if type(meta) is dict else None) or "")
