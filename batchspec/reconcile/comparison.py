"""Two accounts, compared integer by integer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.reconcile.sums import AcceptanceSums

__all__ = ["Reconciliation", "Row", "reconcile"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One count in both accounts.

    Attributes:
        quantity: its name as in the records, or ``num_accepted_tokens_per_pos``.
        position: 0-based position in the draft; None for a total.
        reported: sum over the records that carry metrics.
        unreported: by cause, what was recorded for requests whose records carry none.
        counters: the Prometheus total.
    """

    quantity: str
    position: int | None
    reported: int
    unreported: Mapping[str, int]
    counters: int

    @property
    def difference(self) -> int:
        """Recorded, reported or not, minus counted."""
        return self.reported + sum(self.unreported.values()) - self.counters

    def document(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {
            "quantity": self.quantity,
            "position": self.position,
            "reported": self.reported,
            "unreported": dict(self.unreported),
            "counters": self.counters,
            "difference": self.difference,
        }


@dataclass(frozen=True, kw_only=True)
class Reconciliation:
    """Every count in both accounts, the totals first, then position by position."""

    rows: tuple[Row, ...]

    @property
    def num_differences(self) -> int:
        """Counts on which the accounts differ."""
        return sum(row.difference != 0 for row in self.rows)

    @property
    def is_exact(self) -> bool:
        """Whether the accounts agree on every count."""
        return self.num_differences == 0

    def document(self) -> dict[str, Any]:
        """Return the reconciliation for JSON, as the report shows it."""
        return {
            "is_exact": self.is_exact,
            "num_differences": self.num_differences,
            "rows": [row.document() for row in self.rows],
        }


def reconcile(
    *, reported: AcceptanceSums, unreported: Mapping[str, AcceptanceSums], totals: AcceptanceSums
) -> Reconciliation:
    """Compare the per-request account with the counters.

    Args:
        reported: sums over the records that carry metrics.
        unreported: sums for the other requests by cause, such as ``n > 1``, ``several prompts``, ``error``.
        totals: the counters, or the difference of two scrapes.
    """
    accounts = {cause: sums.counts() for cause, sums in unreported.items()}
    recorded, counted = reported.counts(), totals.counts()
    keys = dict.fromkeys(key for counts in (counted, recorded, *accounts.values()) for key in counts)
    rows = (
        Row(
            quantity=quantity,
            position=position,
            reported=recorded.get((quantity, position), 0),
            unreported={cause: counts.get((quantity, position), 0) for cause, counts in accounts.items()},
            counters=counted.get((quantity, position), 0),
        )
        for quantity, position in keys
    )
    return Reconciliation(rows=tuple(rows))
