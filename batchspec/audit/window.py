"""Responses from before the first scrape or behind the last one, found by the counters themselves.

Rows are written in the order in which the requests ended, or nearly so. If the counters missed the first or the last of
them, there is a run of rows in between whose sums, and whose number of outputs, are the counters to the last integer;
over several counts that does not happen by chance.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from batchspec.audit.counts import FINISHED, num_sequences, stated_counts
from batchspec.ingest import LogRecord, SkippedRow
from batchspec.reconcile.between import Count

__all__ = ["Outside", "find_outside"]

_MAX_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Rows outside the scrape window.

    Attributes:
        num_before: rows before the first one that the counters have.
        num_behind: rows behind the last one.
        named: the first of them, by id or line.
        num_repeated: rows outside whose id a row inside has, too: a second copy, or the same requests asked again.
    """

    num_before: int
    num_behind: int
    named: tuple[str, ...]
    num_repeated: int


def find_outside(rows: Iterable[LogRecord | SkippedRow], target: Mapping[Count, int]) -> Outside | None:
    """Return the rows to leave out so that the others add up to the counters exactly, None where there are none such.

    Of several choices the one that leaves out fewest rows is taken.

    Args:
        rows: in their order.
        target: what the counters counted, all counts that both accounts know, the sequences that ended among them if
            they are counted. There must be draft tokens or steps.
    """
    keys, wanted = tuple(target), tuple(target.values())
    sums = (0,) * len(keys)
    first_with: dict[tuple[int, ...], int] = {sums: 0}
    names: list[str] = []
    best = (0, 0)
    for _, group in groupby(rows, key=attrgetter("path", "line")):
        members = list(group)
        names.append(members[0].custom_id or f"line {members[0].line}")
        for member in members:
            sums = tuple(map(sum, zip(sums, _counts(member, keys), strict=True)))
        first_with.setdefault(sums, len(names))
        start = first_with.get(tuple(total - want for total, want in zip(sums, wanted, strict=True)))
        if start is not None and len(names) - start > best[1] - best[0]:
            best = (start, len(names))
    start, end = best
    left_out = names[:start] + names[end:]
    is_empty = not any(want for key, want in target.items() if key != FINISHED)
    if is_empty or start == end or not left_out:
        return None
    inside = set(names[start:end])
    return Outside(
        num_before=start,
        num_behind=len(names) - end,
        named=tuple(left_out[:_MAX_NAMED]),
        num_repeated=sum(name in inside for name in left_out),
    )


def _counts(row: LogRecord | SkippedRow, keys: tuple[Count, ...]) -> tuple[int, ...]:
    if isinstance(row, SkippedRow):
        return (0,) * len(keys)
    counts = {} if row.acceptance is None else stated_counts(row.acceptance)[0]
    counts[FINISHED] = num_sequences(row)
    return tuple(counts.get(key, 0) for key in keys)
