"""Parquet rows as the dictionaries that a line of JSON would have given, a few rows in memory at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from batchspec.errors import RequestError, UsageError

__all__ = ["check_parquet", "parquet_rows"]

_BATCH_ROWS = 64
_NESTED_COLUMNS = ("body", "messages", "turns")


def check_parquet(path: str | Path) -> None:
    """Read the footer.

    Raises:
        UsageError: it is missing or damaged, or the file has no columns.
    """
    try:
        with pq.ParquetFile(path) as file:
            num_columns = len(file.schema_arrow)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"input {path} is not a whole Parquet file ({reason}): make it again") from error
    if not num_columns:
        raise UsageError(f"input {path} has no columns: make it with a prompt, messages or body column")


def parquet_rows(path: str | Path) -> Iterator[tuple[int, dict[str, Any] | RequestError]]:
    """Yield (1-based row number, row); a row whose text cannot be decoded comes as the error that says so."""
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
        number = 0
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            for offset in range(batch.num_rows):
                number += 1
                yield number, _row(batch.slice(offset, 1))


def _row(batch: pa.RecordBatch) -> dict[str, Any] | RequestError:
    try:
        row = {name: _given(value) for name, value in batch.to_pylist()[0].items()}
    except (UnicodeDecodeError, ValueError, OverflowError) as error:
        return RequestError(f"a value cannot be decoded ({error}): write text columns as UTF-8", code="invalid_value")
    for name in _NESTED_COLUMNS:
        if isinstance(row.get(name), str):
            try:
                row[name] = orjson.loads(row[name])
            except orjson.JSONDecodeError as error:
                return RequestError(
                    f'"{name}" is text that is not JSON ({error.msg} at column {error.colno}):'
                    " write the column as JSON text or as a struct or list",
                    param=name,
                    code="invalid_json",
                )
    return row


def _given(value: Any) -> Any:
    """Drop the keys of structs that are NULL, which in Parquet is how a field is not given."""
    if isinstance(value, dict):
        return {name: _given(item) for name, item in value.items() if item is not None}
    return [_given(item) for item in value] if isinstance(value, list) else value
