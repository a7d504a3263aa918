"""Where requests are read from: files checked before anything is written, opened as streams when they are iterated."""

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from batchspec.errors import DamagedInputError, RequestError
from batchspec.files.finding import find_parts
from batchspec.files.fingerprint import together
from batchspec.files.hashing import HashingFile
from batchspec.files.lines import Line, split_lines
from batchspec.files.parquet_in import parquet_rows
from batchspec.files.part_checks import check_part, damaged, digest_of
from batchspec.files.parts import Part
from batchspec.files.urls import local_form

__all__ = ["InputSource", "Row", "open_source", "open_sources"]

_CHUNK_BYTES = 2**18

Row = tuple[int, bytes | dict[str, Any] | RequestError | None]
"""Line number, and the line's bytes, a Parquet row, what is wrong with that row, or None for an over-long line."""

Split = Callable[[Iterable[bytes]], Iterator[Line]]


class InputSource:
    """An input that exists and can be opened; made by ``open_source``.

    Lines are numbered over all its files, as if they stood one behind the other in one.

    Attributes:
        path: as the user gave it; ``-`` is standard input.
        parts: its files, in order.
        name: how messages name the whole of it.
        suffix: the last extension of its files' names, in lower case; empty where they differ.
        is_parquet: whether all of them are Parquet.
        unit: "line", or "row" for Parquet.
        hashed: number and hash of every file of text that was read from so far.
        num_rows: how many rows it holds. Parquet says it; of other files it is an estimate, blank lines included, from
            the part that was read so far. None as long as there is none, and for streams.
    """

    def __init__(self, *, path: str, parts: Sequence[Part], num_parquet_rows: int):
        self.path = path
        self.parts = tuple(parts)
        self.name = parts[0].name if len(parts) == 1 else path
        suffixes = {part.suffix for part in parts}
        self.suffix = suffixes.pop() if len(suffixes) == 1 else ""
        self.is_parquet = all(part.is_parquet for part in parts)
        self.unit = "row" if self.is_parquet else "line"
        self.num_rows = num_parquet_rows if self.is_parquet else None
        self._num_parquet_rows = num_parquet_rows
        self.hashed: list[tuple[int, HashingFile]] = []
        self._starts: list[int] = []
        self._digests: list[str | None] = []
        self._num_lines = self._num_bytes = 0

    def rows(self, split: Split = split_lines) -> Iterator[Row]:
        """Yield (number, content) of every row that is not blank, in constant memory; ``split`` finds them in text.

        Raises:
            DamagedInputError: a file is truncated or corrupt; raised where that shows.
        """
        self.hashed, self._starts, self._digests = [], [], []
        self._num_lines = self._num_bytes = 0
        num_before = 0
        for part in self.parts:
            self._starts.append(num_before)
            try:
                num_before += yield from _behind(
                    num_before, parquet_rows(part) if part.is_parquet else self._text_rows(part, split)
                )
            except (OSError, pa.ArrowException) as error:
                raise DamagedInputError(damaged(part, error)) from error

    def _text_rows(self, part: Part, split: Split) -> Generator[Row, None, int]:
        """Yield the lines of a file; return how many it has, blank ones included."""
        num_before, number = self._num_lines, 0
        for line in split(self._chunks(part)):
            number = line.number
            yield number, line.data
        return max(number, self._num_lines - num_before) if split is split_lines else number

    def _chunks(self, part: Part) -> Iterator[bytes]:
        """Yield the decompressed bytes, while the bytes of the file itself go through the hash."""
        num_lines_before, num_bytes_before = self._num_lines, self._num_bytes
        with part.open() as opened, HashingFile(opened) as file:
            self.hashed.append((len(self._starts) - 1, file))
            stream = part.decompressed(file)
            num_ends = 0
            while chunk := stream.read(_CHUNK_BYTES):
                num_ends += chunk.count(b"\n")
                self._num_lines = num_lines_before + num_ends + (not chunk.endswith(b"\n"))
                self._num_bytes = num_bytes_before + file.num_bytes
                self._estimate()
                yield chunk
            self._digests.append(file.digest.hexdigest())

    def _estimate(self) -> None:
        """Say how many rows there will be, if the lines to come are as long as those so far."""
        sizes = [part.size for part in self.parts if not part.is_parquet]
        if None not in sizes:
            size = sum(size or 0 for size in sizes)
            self.num_rows = self._num_parquet_rows + round(self._num_lines * size / self._num_bytes)

    def where(self, number: int, *, unit: str | None = None) -> str:
        """Return how messages name a row that was read: its file, and its number there; ``unit`` as they call it."""
        index = max(0, bisect_left(self._starts, number) - 1)
        part, start = self.parts[index], self._starts[index] if self._starts else 0
        return f"{part.name} {unit or part.unit} {number - start}"

    def earlier(self, number: int) -> str:
        """Return how a message about one row names another: the file only if there are several."""
        return f"{self.unit} {number}" if len(self.parts) == 1 else self.where(number)

    def sha256(self) -> str | None:
        """Return the hash of the whole input in hexadecimal; None unless ``rows`` came to its end.

        Of several files it is the hash of their hashes, each in hexadecimal on a line of its own.
        """
        texts = iter(self._digests)
        digests = [digest_of(part) if part.is_parquet else next(texts, None) for part in self.parts]
        return together(digests)

    def dataset(self) -> dict[str, Any]:
        """Return path, size in bytes and fingerprint for the manifest, of a stream None, and the files of a whole."""
        sizes = [part.size for part in self.parts]
        if None in sizes:
            return {"path": self.path, "size": None, "fingerprint": None}
        prints = [part.fingerprint() for part in self.parts]
        document = {"path": self.path, "size": sum(size or 0 for size in sizes), "fingerprint": together(prints)}
        if self.parts[0].path == self.path:
            return document
        files = [{"path": part.path, "size": size} for part, size in zip(self.parts, sizes, strict=True)]
        return document | {"parts": files}


def _behind(num_before: int, rows: Generator[Row, None, int]) -> Generator[Row, None, int]:
    """Yield the rows of a file with their numbers in the whole input; return what the file returns."""
    while True:
        try:
            number, content = next(rows)
        except StopIteration as end:
            return int(end.value)
        yield num_before + number, content


def open_source(path: str | Path) -> InputSource:
    """Check that the path can be read and return it as a source; ``-`` is JSONL on standard input.

    Args:
        path: a file, a directory of part files, a pattern, or a URL of any of these.

    Raises:
        UsageError: the path is missing, cannot be read, or is not what its extension says.
    """
    parts = find_parts(str(path))
    return InputSource(path=local_form(str(path)), parts=parts, num_parquet_rows=sum(map(check_part, parts)))


def open_sources(path: str | Path) -> list[InputSource]:
    """Return the files of a path as a source each; errors as ``open_source``."""
    parts = find_parts(str(path))
    return [InputSource(path=part.path, parts=(part,), num_parquet_rows=check_part(part)) for part in parts]
