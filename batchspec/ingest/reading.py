"""Logs of any mix of engines as neutral records, in constant memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from batchspec.ingest.record import LogRecord, SkippedRow

__all__ = ["read_logs"]


def read_logs(paths: Sequence[str | Path]) -> Iterator[LogRecord | SkippedRow]:
    """Yield what the rows of the logs say, file by file, in the order of the rows.

    A row is a plain body, a batch line around one, a chunk of a streamed response (bare, or behind ``data:``), or a
    benchmark's answer; ``.jsonl``, also ``.gz`` and ``.zst``, or ``.parquet``. A streamed response gives one record
    where it ends. A row that cannot be believed comes as a ``SkippedRow`` and is never repaired.

    Args:
        paths: files, run directories (their ``responses.jsonl``), or ``-`` for standard input.

    Raises:
        UsageError: a path is missing or not what its extension says; raised before anything is read.
        DamagedInputError: a file is truncated or corrupt; raised where that shows.
    """
    raise NotImplementedError(paths)
