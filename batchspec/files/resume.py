"""Opening the journal of an interrupted run: what of it can be kept, and which counts still describe it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from batchspec.errors import UsageError
from batchspec.files.atomic import sync_directory
from batchspec.files.finished import FinishedIndices, record_index
from batchspec.files.journal import Journal

__all__ = ["Recovery", "check_whole", "checkpoint_state", "open_for_resume"]


_AGAIN = "use --overwrite to make it again"


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What was found in the journal.

    Attributes:
        finished: indices of the input lines whose records were kept.
        num_records: how many records were kept.
        state: what the caller gave to the checkpoint that ends exactly behind the kept records; None when there is no
            such checkpoint, so that counts for the kept records are lost.
        num_dropped_bytes: bytes cut from the end: a torn line, or records that no checkpoint counts.
    """

    finished: FinishedIndices
    num_records: int
    state: Mapping[str, Any] | None
    num_dropped_bytes: int


@dataclass(frozen=True, kw_only=True)
class _Checkpoint:
    journal_bytes: int
    num_records: int
    state: dict[str, Any]


def open_for_resume(*, path: Path, checkpoint_path: Path) -> tuple[Journal, Recovery]:
    """Repair the journal and open it for appending.

    With a checkpoint the file is cut back to it. A file that is shorter than its checkpoint says, or damaged before
    it, or has no checkpoint, keeps its leading whole records without the checkpoint's state.

    Raises:
        UsageError: a file cannot be read or written.
    """
    try:
        size = path.stat().st_size if path.exists() else 0
        checkpoint = _read_checkpoint(checkpoint_path)
        limit = size if checkpoint is None else min(size, checkpoint.journal_bytes)
        num_bytes, finished = _scan(path, limit=limit)
        is_counted = checkpoint is not None and (num_bytes, len(finished)) == (
            checkpoint.journal_bytes,
            checkpoint.num_records,
        )
        if not is_counted:
            # A checkpoint that does not describe the file must not survive until the file has grown past it again.
            checkpoint_path.unlink(missing_ok=True)
            sync_directory(checkpoint_path.parent)
        if num_bytes < size:
            os.truncate(path, num_bytes)
    except OSError as error:
        raise UsageError(f"{path} cannot be repaired ({error.strerror or error}): check its permissions") from error
    recovery = Recovery(
        finished=finished,
        num_records=len(finished),
        state=checkpoint.state if checkpoint is not None and is_counted else None,
        num_dropped_bytes=size - num_bytes,
    )
    return Journal(path=path, checkpoint_path=checkpoint_path, num_records=len(finished)), recovery


def check_whole(path: Path, *, num_records: int | None) -> None:
    """Raise UsageError unless the journal of a finished run still holds its records, each once, and nothing else."""
    try:
        size = path.stat().st_size
        num_bytes, finished = _scan(path, limit=size)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error}): check its permissions") from error
    if num_bytes < size:
        raise UsageError(f"{path} is damaged: line {len(finished) + 1} is not a whole record of its own: {_AGAIN}")
    if len(finished) != num_records:
        raise UsageError(
            f"{path} is damaged: it holds {len(finished)} records, and the manifest says {num_records}: {_AGAIN}"
        )


def checkpoint_state(path: Path) -> Mapping[str, Any]:
    """Return what the caller gave to the last checkpoint; nothing if there is none that can be read."""
    try:
        checkpoint = _read_checkpoint(path)
    except OSError:
        checkpoint = None
    return {} if checkpoint is None else checkpoint.state


def _read_checkpoint(path: Path) -> _Checkpoint | None:
    """Return the checkpoint; None if it is missing or not one of ours."""
    try:
        document = orjson.loads(path.read_bytes())
        checkpoint = _Checkpoint(**document)
    except (FileNotFoundError, orjson.JSONDecodeError, TypeError):
        return None
    numbers = (checkpoint.journal_bytes, checkpoint.num_records)
    is_sound = all(type(number) is int and number >= 0 for number in numbers) and isinstance(checkpoint.state, dict)
    return checkpoint if is_sound else None


def _scan(path: Path, *, limit: int) -> tuple[int, FinishedIndices]:
    """Return the length in bytes of the leading whole, distinct records within ``limit`` bytes, and their indices."""
    finished = FinishedIndices()
    num_bytes = 0
    if not limit:
        return num_bytes, finished
    with path.open("rb") as file:
        for line in file:
            index = _index_of(line)
            if index is None or index in finished or num_bytes + len(line) > limit:
                break
            finished.add(index)
            num_bytes += len(line)
    return num_bytes, finished


def _index_of(line: bytes) -> int | None:
    """Return the index of the record on a whole line; None for a torn or foreign line."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record_index(record) if isinstance(record, dict) else None
