"""What a server counted between two scrapes."""

from collections.abc import Mapping
from dataclasses import dataclass

from batchspec.errors import UsageError
from batchspec.reconcile.scrapes import FINISHED, Scrape

__all__ = ["Count", "Counted", "counted_between"]

Count = tuple[str, int | None]
"""A quantity and a position in the draft; None for a total."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Counter differences.

    Attributes:
        by_engine: of every engine label, the counts that it has; one ``""`` for a server without the label.
        num_finished: sequences that ended; None where the server does not count them.
    """

    by_engine: Mapping[str, Mapping[Count, int]]
    num_finished: int | None

    @property
    def total(self) -> dict[Count, int]:
        """Counts summed over the engines."""
        total: dict[Count, int] = {}
        for counts in self.by_engine.values():
            for key, count in counts.items():
                total[key] = total.get(key, 0) + count
        return total


def counted_between(before: Scrape | None, after: Scrape) -> Counted:
    """Return the differences of the counters, engine by engine; a series that is new began at zero.

    Args:
        before: None when the server was started for the requests, so that all its counters began at zero.
        after: of the same server, later.

    Raises:
        UsageError: a counter fell or vanished, so that the difference means nothing.
    """
    earlier = {} if before is None else before.counts
    by_engine: dict[str, dict[Count, int]] = {}
    num_finished: int | None = None
    if before is not None:
        _check_kept(before, after)
    for series, count in after.counts.items():
        difference = count - earlier.get(series, 0)
        if series.quantity == FINISHED:
            num_finished = (num_finished or 0) + difference
            continue
        counts = by_engine.setdefault(series.label("engine") or "", {})
        key = (series.quantity, series.position)
        counts[key] = counts.get(key, 0) + difference  # models of one engine add up
    return Counted(by_engine=dict(sorted(by_engine.items(), key=_by_number)), num_finished=num_finished)


def _check_kept(before: Scrape, after: Scrape) -> None:
    """Raise UsageError for the first counter that did not live from one scrape to the other."""
    remedy = "scrape the same server again before and after the requests"
    for series, count in before.counts.items():
        now = after.counts.get(series)
        if now is None:
            raise UsageError(f"{series} is in {before.path} and not in {after.path}: {remedy}")
        if now < count:
            raise UsageError(
                f"{series} fell from {count} in {before.path} to {now} in {after.path}, so the server was started anew "
                f"in between or the files are in the wrong order: {remedy}"
            )


def _by_number(item: tuple[str, Mapping[Count, int]]) -> tuple[bool, int, str]:
    """Sort engine labels as numbers where they are numbers."""
    label = item[0]
    return (not label.isdecimal(), int(label) if label.isdecimal() else 0, label)
