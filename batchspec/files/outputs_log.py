"""The token ids of a run's outputs, beside its records, for drafters that learn from them.

A record's text does not tell its token ids, and an interrupted run has to go on with just what it had learnt.
"""

import os
from collections.abc import Container, Iterator
from pathlib import Path
from types import TracebackType

import orjson

from batchspec.errors import UsageError

__all__ = ["OutputsLog"]


class OutputsLog:
    """An append-only JSONL file of ``{"index", "sample", "tokens"}``; a context manager.

    Args:
        path: the file; what an earlier part of the run wrote stays.
        is_fresh: begin an empty one.

    Raises:
        UsageError: it cannot be written.
    """

    def __init__(self, path: Path, *, is_fresh: bool):
        self.path = path
        try:
            self._size = 0 if is_fresh or not path.exists() else _whole_lines(path)
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._file.truncate(self._size)
            self._file.seek(self._size)
        except OSError as error:
            raise self._refusal(error) from error

    def append(self, index: int, sample_index: int, tokens: list[int]) -> None:
        """Append an output; raises as the class."""
        line = orjson.dumps({"index": index, "sample": sample_index, "tokens": tokens}) + b"\n"
        try:
            self._file.write(line)
        except OSError as error:
            raise self._refusal(error) from error

    def sync(self) -> None:
        """Make durable what was appended; to be called before the records that depend on it are."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._refusal(error) from error

    def read(self, finished: Container[int]) -> Iterator[tuple[int, int, list[int]]]:
        """Yield index, sample and tokens of every output whose record is kept, the last where there are several."""
        self.sync()
        found: dict[tuple[int, int], list[int]] = {}
        with self.path.open("rb") as file:
            for line in file:
                entry = orjson.loads(line)
                if entry["index"] in finished:
                    found[entry["index"], entry["sample"]] = entry["tokens"]
        for (index, sample_index), tokens in sorted(found.items()):
            yield index, sample_index, tokens

    def __enter__(self) -> "OutputsLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError as failure:
            raise self._refusal(failure) from failure

    def _refusal(self, error: OSError) -> UsageError:
        return UsageError(f"{self.path} cannot be written ({error.strerror or error}): put that right")


def _whole_lines(path: Path) -> int:
    """Return the bytes of the leading lines that are whole; a torn one was never depended on."""
    size = 0
    with path.open("rb") as file:
        for line in file:
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                break
            if not line.endswith(b"\n"):
                break
            size += len(line)
    return size
