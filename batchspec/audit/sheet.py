"""Both accounts side by side, count by count."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.audit.counts import PER_POSITION, SCALARS
from batchspec.audit.ledger import Ledger
from batchspec.reconcile.between import Count, Counted

__all__ = ["SheetRow", "make_sheet"]

Unreported = Mapping[str, Mapping[Count, int]]


@dataclass(frozen=True, kw_only=True)
class SheetRow:
    """One count in both accounts.

    Attributes:
        quantity: its name as in the records, or ``num_accepted_tokens_per_pos``.
        position: 0-based position in the draft; None for a total.
        reported: sum over the responses; None when some of them do not state it.
        unreported: by cause, what was recorded for responses that carry no metrics, where that is known.
        by_engine: by engine label, the difference of the counters.
        counters: summed over the engines; None when the server does not count it.
    """

    quantity: str
    position: int | None
    reported: int | None
    unreported: Mapping[str, int]
    by_engine: Mapping[str, int]
    counters: int | None

    @property
    def difference(self) -> int | None:
        """Responses minus counters; None where one of them is not known."""
        if self.reported is None or self.counters is None:
            return None
        return self.reported + sum(self.unreported.values()) - self.counters

    @property
    def key(self) -> Count:
        """Quantity and position."""
        return self.quantity, self.position

    def document(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {
            "quantity": self.quantity,
            "position": self.position,
            "reported": self.reported,
            "unreported": dict(self.unreported),
            "counters_by_engine": dict(self.by_engine),
            "counters": self.counters,
            "difference": self.difference,
        }


def make_sheet(ledger: Ledger, counted: Counted, *, unreported: Unreported) -> list[SheetRow]:
    """Return the three totals, then every position that one of the accounts has.

    Args:
        ledger: the responses.
        counted: the counters.
        unreported: by cause, counts of responses without metrics, where a run kept them.
    """
    accounts = (ledger.counts, counted.total, *unreported.values())
    positions = {key[1] for counts in accounts for key in counts if key[0] == PER_POSITION and key[1] is not None}
    keys: list[Count] = [(name, None) for name in SCALARS]
    keys += [(PER_POSITION, position) for position in sorted(positions)]
    return [_row(key, ledger, counted, unreported) for key in keys]


def _row(key: Count, ledger: Ledger, counted: Counted, unreported: Unreported) -> SheetRow:
    quantity, position = key
    total = counted.total
    is_counted = not total or any(name == quantity for name, _ in total)
    return SheetRow(
        quantity=quantity,
        position=position,
        reported=None if ledger.num_unstated[quantity] else ledger.counts.get(key, 0),
        unreported={cause: counts.get(key, 0) for cause, counts in unreported.items()},
        by_engine={engine: counts.get(key, 0) for engine, counts in counted.by_engine.items()} if is_counted else {},
        counters=total.get(key, 0) if is_counted else None,
    )
