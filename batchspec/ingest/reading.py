"""Logs of any mix of engines as neutral records, in constant memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from batchspec.errors import UsageError
from batchspec.files.source import open_sources
from batchspec.files.urls import is_url, local_form
from batchspec.ingest.blocks import Log
from batchspec.ingest.record import LogRecord, SkippedRow

__all__ = ["open_logs", "read_logs"]

_RESPONSES = "responses.jsonl"
_SWEEP = "sweep.json"


def read_logs(paths: Sequence[str | Path]) -> Iterator[LogRecord | SkippedRow]:
    """Return an iterator over what the rows of the logs say, file by file, in the order of the rows.

    A row is a plain body, a batch line around one, a chunk of a streamed response (bare, or behind ``data:``), or a
    benchmark's answer; ``.jsonl``, also ``.gz`` and ``.zst``, or ``.parquet``. A streamed response gives one record
    where it ends. A row that cannot be believed comes as a ``SkippedRow`` and is never repaired.

    Args:
        paths: files, patterns, run directories (their ``responses.jsonl``), URLs, or ``-`` for standard input.

    Raises:
        UsageError: a path is missing or not what its extension says; raised before anything is read.
        DamagedInputError: a file is truncated or corrupt; raised where that shows.
    """
    return (entry for log in open_logs(paths) for entry in _entries(log))


def open_logs(paths: Sequence[str | Path]) -> list[Log]:
    """Return the logs, for those who read them block by block; arguments and errors as in ``read_logs``."""
    return [log for path in paths for log in _logs(str(path))]


def _logs(path: str) -> list[Log]:
    """Return the log of a path, or one for each file that a pattern matches."""
    path = local_form(path)
    sources = open_sources(_file(path))
    return [Log(path=path if _is_run(path) else source.path, source=source) for source in sources]


def _entries(log: Log) -> Iterator[LogRecord | SkippedRow]:
    for rows in log.blocks():
        yield from log.entries(rows)
    yield from log.last_entries()


def _is_run(path: str) -> bool:
    return path not in ("", "-") and not is_url(path) and Path(path).is_dir()


def _file(path: str) -> str:
    """Return the path itself, or the responses in a run directory.

    Raises:
        UsageError: it is a directory without any.
    """
    if not _is_run(path):
        return path
    responses = Path(path) / _RESPONSES
    if not responses.is_file() and (Path(path) / _SWEEP).is_file():
        raise UsageError(f"{path} holds a sweep: its points are the run directories in it, give one of these")
    if not responses.is_file():
        raise UsageError(f"{path} is a directory without {_RESPONSES}: give a run directory or a file")
    return str(responses)
