"""The journal of a run: records appended to a file, and checkpoints that say how much of it is safe and counted."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from batchspec.errors import UsageError
from batchspec.files.atomic import write_whole

__all__ = ["Journal", "create_journal", "read_records"]


class Journal:
    """An append-only JSONL file with a checkpoint beside it; a context manager.

    What was appended after the last checkpoint may be lost in a crash and is computed again on resume.

    Args:
        path: the JSONL file, which is opened for appending.
        checkpoint_path: where ``{"journal_bytes", "num_records", "state"}`` is kept.
        num_records: records that the file holds already.

    Attributes:
        num_safe_bytes: how long the file was at the last checkpoint; 0 before the first.
    """

    def __init__(self, *, path: Path, checkpoint_path: Path, num_records: int):
        self.path = path
        self.num_records = num_records
        self.num_safe_bytes = 0
        self._checkpoint_path = checkpoint_path
        with _writing(path):
            self._file = path.open("ab")

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record.

        Raises:
            UsageError: the file cannot be written, as when the disk is full.
        """
        line = orjson.dumps(record) + b"\n"
        with _writing(self.path):
            self._file.write(line)
        self.num_records += 1

    def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Make every record appended so far durable, and then the checkpoint that counts them.

        Args:
            state: whatever the caller needs to continue its own counts from here; plain JSON.

        Raises:
            UsageError: a file cannot be written, or the records' file is no longer where it was.
        """
        with _writing(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            num_bytes = self._file.tell()
        self._check_in_place()
        document = {"journal_bytes": num_bytes, "num_records": self.num_records, "state": state}
        with _writing(self._checkpoint_path):
            write_whole(self._checkpoint_path, orjson.dumps(document) + b"\n")
        self.num_safe_bytes = num_bytes

    def _check_in_place(self) -> None:
        """Raise UsageError if the records go to a file that was removed, moved or replaced meanwhile."""
        try:
            is_in_place = os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except OSError:
            is_in_place = False
        if not is_in_place:
            raise UsageError(f"{self.path} was removed, moved or replaced while the run was writing to it")

    def close(self) -> None:
        """Close the file; only what was checkpointed is sure to be in it."""
        with _writing(self.path):
            self._file.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal into a sentence."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}): put that right") from error


def create_journal(*, path: Path, checkpoint_path: Path) -> Journal:
    """Start an empty journal in the place of any that was there.

    Raises:
        UsageError: a file cannot be written.
    """
    with _writing(path):
        checkpoint_path.unlink(missing_ok=True)
        path.write_bytes(b"")
    return Journal(path=path, checkpoint_path=checkpoint_path, num_records=0)


def read_records(path: Path, *, start: int = 0, end: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSONL file, one in memory at a time.

    Args:
        path: of the file.
        start: byte at which the first record begins.
        end: byte behind the last record; None for the end of the file.

    Raises:
        UsageError: the file cannot be opened, or a line of it is not a JSON object.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error}): check the path") from error
    with file:
        file.seek(start)
        position = start
        for number, line in enumerate(file, start=1):
            if end is not None and position >= end:
                return
            position += len(line)
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                record = None
            if not isinstance(record, dict):
                raise UsageError(f"{path} line {number} is not a record: remove that line or make the file again")
            yield record
