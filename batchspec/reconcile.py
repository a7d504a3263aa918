"""Two independent accounts of one run, compared integer by integer.

The per-request recorders give one account, the Prometheus counters the other. What the recorders counted for requests
that carry no metrics of their own is named by cause, so that the sum of the first account must equal the second.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from operator import add, sub
from typing import Any

__all__ = ["AcceptanceSums", "Reconciliation", "Row", "reconcile"]


@dataclass(frozen=True, kw_only=True)
class AcceptanceSums:
    """What both accounts count; the default is the neutral element of addition.

    Attributes:
        num_spec_steps: verification steps that had a draft.
        num_draft_tokens: draft tokens that were verified.
        num_accepted_draft_tokens: draft tokens that the verifier matched.
        num_accepted_tokens_per_pos: (k,) matched draft tokens at each position of the draft.
    """

    num_spec_steps: int = 0
    num_draft_tokens: int = 0
    num_accepted_draft_tokens: int = 0
    num_accepted_tokens_per_pos: tuple[int, ...] = ()

    @classmethod
    def from_histogram(cls, histogram: Sequence[int], num_draft_tokens: int) -> "AcceptanceSums":
        """Return the sums behind an acceptance histogram.

        Args:
            histogram: (k + 1,) number of steps that accepted exactly j draft tokens; empty when nothing was recorded.
            num_draft_tokens: draft tokens of these steps, which the histogram cannot tell.
        """
        return cls(
            num_spec_steps=sum(histogram),
            num_draft_tokens=num_draft_tokens,
            num_accepted_draft_tokens=sum(j * count for j, count in enumerate(histogram)),
            num_accepted_tokens_per_pos=_survivors(histogram),
        )

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "AcceptanceSums":
        """Return the sums that a document states, positions from its histogram.

        Args:
            document: ``speculative_decoding`` of a record, or ``pooled`` of an aggregate; its own totals are taken as
                they stand, so that a total which contradicts its histogram cannot reconcile.
        """
        return cls(
            num_spec_steps=document["num_spec_steps"],
            num_draft_tokens=document["num_draft_tokens"],
            num_accepted_draft_tokens=document["num_accepted_draft_tokens"],
            num_accepted_tokens_per_pos=_survivors(document["acceptance_histogram"]),
        )

    @classmethod
    def from_totals(cls, totals: Mapping[str, Any]) -> "AcceptanceSums":
        """Return the sums in the shape that ``Counters.totals`` has; the inverse of ``totals``."""
        return cls(
            num_spec_steps=totals["num_spec_steps"],
            num_draft_tokens=totals["num_draft_tokens"],
            num_accepted_draft_tokens=totals["num_accepted_draft_tokens"],
            num_accepted_tokens_per_pos=tuple(totals["num_accepted_tokens_per_pos"]),
        )

    def totals(self) -> dict[str, Any]:
        """Return a JSON document in the shape that ``Counters.totals`` has."""
        return {
            "num_spec_steps": self.num_spec_steps,
            "num_draft_tokens": self.num_draft_tokens,
            "num_accepted_draft_tokens": self.num_accepted_draft_tokens,
            "num_accepted_tokens_per_pos": list(self.num_accepted_tokens_per_pos),
        }

    def __add__(self, other: "AcceptanceSums") -> "AcceptanceSums":
        return self._combined(other, add)

    def __sub__(self, other: "AcceptanceSums") -> "AcceptanceSums":
        return self._combined(other, sub)

    def _combined(self, other: "AcceptanceSums", operation: Callable[[int, int], int]) -> "AcceptanceSums":
        """Return the sums combined one by one; a position that one side lacks is zero there."""
        pairs = zip_longest(self.num_accepted_tokens_per_pos, other.num_accepted_tokens_per_pos, fillvalue=0)
        return AcceptanceSums(
            num_spec_steps=operation(self.num_spec_steps, other.num_spec_steps),
            num_draft_tokens=operation(self.num_draft_tokens, other.num_draft_tokens),
            num_accepted_draft_tokens=operation(self.num_accepted_draft_tokens, other.num_accepted_draft_tokens),
            num_accepted_tokens_per_pos=tuple(operation(a, b) for a, b in pairs),
        )

    def counts(self) -> dict[tuple[str, int | None], int]:
        """Return every count by (quantity, position); position is None for the three totals."""
        scalars = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
        flat: dict[tuple[str, int | None], int] = {(name, None): getattr(self, name) for name in scalars}
        for position, count in enumerate(self.num_accepted_tokens_per_pos):
            flat["num_accepted_tokens_per_pos", position] = count
        return flat


def _survivors(histogram: Sequence[int]) -> tuple[int, ...]:
    """Return for each position i the steps that accepted more than i draft tokens: sum over j > i of histogram[j]."""
    return tuple(accumulate(histogram[:0:-1]))[::-1]


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
