"""What an account of acceptance counts: four kinds of integers that add up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from operator import add, sub
from typing import Any

__all__ = ["AcceptanceSums"]


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
