"""The records of shards in the order of the input, with no record lost and none twice."""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from batchspec.errors import UsageError
from batchspec.files import record_index
from batchspec.scaleout.checking import AccountCheck
from batchspec.scaleout.shards import ShardRun

__all__ = ["records_in_order"]


def records_in_order(runs: Sequence[ShardRun]) -> Iterator[dict[str, Any]]:
    """Yield the records of all shards by their index in the input; 16 bytes of memory for each.

    Args:
        runs: all shards of an input, in order.

    Raises:
        UsageError: a record is missing, twice there, or another shard's, or a shard's records and counters differ;
            raised before the first is yielded.
    """
    total = sum(run.num_records for run in runs)
    for run in runs:
        if run.num_records != run.shard.num_rows(total):
            raise UsageError(
                f"shard {run.shard} in {run.directory} has {run.num_records} records where {run.shard.num_rows(total)} "
                f"of {total} rows are its own: run it again with --overwrite"
            )
    places = [_scan(run) for run in runs]
    shares = [_read(run, offsets) for run, offsets in zip(runs, places, strict=True)]
    for index in range(total):
        yield next(shares[index % len(shares)])


def _scan(run: ShardRun) -> NDArray[np.int64]:
    """Return where each record begins in the shard's file, in bytes, in the order of the input."""
    indices, offsets = array("q"), array("q")
    offset = 0
    check = AccountCheck(run)
    try:
        with run.responses.open("rb") as file:
            for number, line in enumerate(file, start=1):
                record = _record(run, number, line)
                indices.append(_index_of(run, number, record))
                check.add(number, record)
                offsets.append(offset)
                offset += len(line)
    except OSError as error:
        raise UsageError(f"{run.responses} cannot be read ({error.strerror or error}): copy it again") from error
    if len(indices) != run.num_records:
        raise UsageError(
            f"{run.responses} holds {len(indices)} records, and its manifest says {run.num_records}: copy it again"
        )
    found = np.frombuffer(indices, dtype=np.int64)
    order = np.argsort(found, kind="stable")
    wanted = run.shard.index + run.shard.count * np.arange(len(found))
    wrong = np.flatnonzero(found[order] != wanted)
    if len(wrong):
        raise UsageError(
            f"{run.responses} has no record of row {wanted[wrong[0]]} of the input, and another twice or too many: "
            "copy it again"
        )
    check.finish()
    in_order: NDArray[np.int64] = np.frombuffer(offsets, dtype=np.int64)[order]
    return in_order


def _record(run: ShardRun, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        record = None
    if not isinstance(record, dict):
        raise UsageError(f"{run.responses} line {number} is not a record of a run: copy the file again")
    return record


def _index_of(run: ShardRun, number: int, record: dict[str, Any]) -> int:
    index = record_index(record)
    if index is None:
        raise UsageError(f"{run.responses} line {number} is not a record of a run: copy the file again")
    if not run.shard.holds(index):
        raise UsageError(f"{run.responses} line {number} answers row {index}, which is not in shard {run.shard}")
    return index


def _read(run: ShardRun, offsets: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    with run.responses.open("rb") as file:
        for offset in map(int, offsets):
            if file.tell() != offset:
                file.seek(offset)
            yield orjson.loads(file.readline())
