"""Parquet rows as the dictionaries that a line of JSON would have given, a few rows in memory at a time."""

from collections.abc import Generator
from itertools import chain
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from batchspec.errors import RequestError, UsageError
from batchspec.files.identity import Columns
from batchspec.files.parts import Part

__all__ = ["check_parquet", "decode_nested", "parquet_rows"]

_BATCH_ROWS = 64
# Kept as JSON text where no one type fits the values of all rows. Never a column of plain text.
_NESTED_COLUMNS = ("body", "messages", "turns")
_NESTED_FIELDS = (
    "chat_template_kwargs",
    "logit_bias",
    "messages",
    "response_format",
    "stream_options",
    "structured_outputs",
    "tools",
)


def check_parquet(part: Part) -> int:
    """Read the footer and return the number of rows.

    Raises:
        UsageError: it is missing or damaged, or the file has no columns.
    """
    try:
        with part.open() as opened, pq.ParquetFile(opened) as file:
            num_columns, num_rows = len(file.schema_arrow), int(file.metadata.num_rows)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"input {part.path} is not a whole Parquet file ({reason}): make it again") from error
    if not num_columns:
        raise UsageError(f"input {part.path} has no columns: make it with a prompt, messages or body column")
    return num_rows


def parquet_rows(part: Part) -> Generator[tuple[int, dict[str, Any] | RequestError], None, int]:
    """Yield (1-based row number, row); a row whose text cannot be decoded comes as the error that says so.

    Returns:
        The number of rows.
    """
    with part.open() as opened, pq.ParquetFile(opened, pre_buffer=False, buffer_size=2**20) as file:
        batches = file.iter_batches(batch_size=_BATCH_ROWS)
        yield from enumerate(chain.from_iterable(map(_rows, batches)), start=1)
        return int(file.metadata.num_rows)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any] | RequestError]:
    """Return the rows of a batch; one row at a time only where a value of the batch cannot be decoded."""
    try:
        return [_given(row) for row in batch.to_pylist()]
    except (ValueError, OverflowError) as error:
        if batch.num_rows == 1:
            return [RequestError(f"a value cannot be decoded ({error}): write text columns as UTF-8")]
        return [row for offset in range(batch.num_rows) for row in _rows(batch.slice(offset, 1))]


def decode_nested(row: dict[str, Any], *, columns: Columns) -> dict[str, Any]:
    """Return the row with the nested columns that are kept as JSON text decoded; in a body that is a struct as well.

    A column that the user named as the prompt's or the id's is text, unless it is ``messages`` or ``turns``.

    Raises:
        RequestError: such a text is not JSON.
    """
    texts = {columns.prompt, columns.id} - {"messages", "turns"}
    body = row.get("body")
    if isinstance(body, dict) and "body" not in texts:
        row = row | {"body": _decoded(body, _NESTED_FIELDS)}
    return _decoded(row, tuple(name for name in (*_NESTED_COLUMNS, *_NESTED_FIELDS) if name not in texts))


def _decoded(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the row with the texts under these names decoded."""
    decoded = dict(row)
    for name in names:
        if isinstance(row.get(name), str):
            try:
                decoded[name] = orjson.loads(row[name])
            except orjson.JSONDecodeError as error:
                raise RequestError(
                    f'"{name}" is text that is not JSON ({error.msg} at column {error.colno}):'
                    " write the column as JSON text, a struct or a list",
                    param=name,
                    code="invalid_json",
                ) from error
    return decoded


def _given(value: Any) -> Any:
    """Drop the keys of structs that are NULL, which in Parquet is how a field is not given."""
    if isinstance(value, dict):
        return {name: _given(item) for name, item in value.items() if item is not None}
    return [_given(item) for item in value] if isinstance(value, list) else value
