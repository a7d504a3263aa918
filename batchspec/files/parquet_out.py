"""Response records as Parquet: typed columns for what people query, JSON text for the rest."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from batchspec.errors import UsageError
from batchspec.files.atomic import whole_file
from batchspec.files.journal import read_records
from batchspec.report.bodies import body_facts

__all__ = ["GROUP_BYTES", "RESPONSE_SCHEMA", "read_responses", "responses_to_parquet"]

_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "custom_id": pa.string(),
    "category": pa.string(),
    "sampling": pa.string(),
    "status_code": pa.int32(),
    "text": pa.string(),
    "finish_reason": pa.string(),
    "error_message": pa.string(),
    "prompt_tokens": pa.int64(),
    "completion_tokens": pa.int64(),
    "response": pa.string(),
    "error": pa.string(),
}
RESPONSE_SCHEMA = pa.schema(_COLUMNS)
_GROUP_ROWS = 4096
GROUP_BYTES = 16 * 2**20


def responses_to_parquet(
    *,
    jsonl_path: Path,
    parquet_path: Path,
    start: int = 0,
    end: int | None = None,
    metadata: Mapping[bytes, bytes] | None = None,
) -> int:
    """Write the records of a JSONL file as Parquet, in one piece or not at all; return how many there were.

    Memory holds one row group: at most 4,096 records or 16 MiB of them, and at least one.

    Args:
        jsonl_path: the records.
        parquet_path: the file to write.
        start: byte of the JSONL file where the first record begins.
        end: byte behind the last record; None for all records.
        metadata: of the Parquet file.

    Raises:
        UsageError: a file cannot be read or written.
    """
    num_rows = 0
    schema = RESPONSE_SCHEMA.with_metadata(dict(metadata)) if metadata else RESPONSE_SCHEMA
    try:
        with whole_file(parquet_path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
            for rows in _groups(_row(record) for record in read_records(jsonl_path, start=start, end=end)):
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                num_rows += len(rows)
    except OSError as error:
        raise UsageError(f"{parquet_path} cannot be written ({error.strerror or error}): check the path") from error
    return num_rows


def _groups(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield lists of rows, each closed by its number of rows or by its bytes of JSON text."""
    group: list[dict[str, Any]] = []
    num_bytes = 0
    for row in rows:
        group.append(row)
        num_bytes += len(row["response"] or "") + len(row["error"] or "")
        if len(group) == _GROUP_ROWS or num_bytes >= GROUP_BYTES:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of one record; the tokens of a stream that does not tell its usage are null."""
    response, error = record.get("response") or {}, record.get("error") or {}
    facts = body_facts(response.get("body") or {})
    usage = facts.usage or {}
    return {
        "id": record["id"],
        "custom_id": record.get("custom_id"),
        "category": record.get("category"),
        "sampling": _as_json(record.get("sampling")),
        "status_code": response.get("status_code"),
        "text": facts.text,
        "finish_reason": facts.finish_reason,
        "error_message": error.get("message"),
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "response": _as_json(record.get("response")),
        "error": _as_json(record.get("error")),
    }


def _as_json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def read_responses(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records that ``responses_to_parquet`` wrote, equal to the lines they came from.

    Raises:
        UsageError: the file cannot be read, or was not written by batchspec.
    """
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            columns = ["id", "custom_id", "category", "sampling", "response", "error"]
            batches = (batch.to_pylist() for batch in file.iter_batches(batch_size=64, columns=columns))
            yield from map(_record, chain.from_iterable(batches))
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a Parquet file of responses ({error}): make it again") from error


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of one row; a record without a category or sampling parameters has no such key."""
    record = {"id": row["id"], "custom_id": row["custom_id"]}
    if row["category"] is not None:
        record["category"] = row["category"]
    if row.get("sampling") is not None:
        record["sampling"] = orjson.loads(row["sampling"])
    return record | {name: None if row[name] is None else orjson.loads(row[name]) for name in ("response", "error")}
