"""Responses on their way out: of a run directory, or of a file."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

from batchspec.convert.aiperf import aiperf_record
from batchspec.convert.converting import Conversion, Converted, as_object
from batchspec.errors import UsageError
from batchspec.files.source import Row, open_source

__all__ = ["to_aiperf"]


def to_aiperf(path: str, *, say: Callable[[str], None]) -> Conversion:
    """Return the conversion of responses to AIPerf's records.

    Args:
        path: file of responses, run directory, or ``-``.
        say: as in ``Conversion``.

    Raises:
        UsageError: there are no responses there, or they are Parquet.
    """
    source = open_source(Path(path) / "responses.jsonl" if path != "-" and Path(path).is_dir() else path)
    if source.is_parquet:
        raise UsageError(f"{path} is Parquet: give the run directory or its responses.jsonl")
    indices = count()

    def convert(row: Row) -> Converted:
        return Converted(line=aiperf_record(as_object(row), index=next(indices)))

    return Conversion(source.rows(), convert, where=source.where, say=say)
