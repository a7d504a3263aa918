"""The numbers of many requests as columns of 32-bit integers, about 100 bytes a request, whatever their texts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ABSENT", "FIELDS", "MARKED", "Columns", "Integers", "Ragged"]

ABSENT = -1
FIELDS = (
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_tokens",
    "num_decode_steps",
    "num_discarded_tokens",
)
"""The fields that have a column of their own."""

MARKED = (*FIELDS, "acceptance_histogram")
"""The fields that have a bit among the derived and the estimated, in this order."""

Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ragged:
    """Lists of different lengths, one behind the other.

    Attributes:
        values: all entries.
        lengths: (requests,) how many entries each request has.
    """

    values: Integers
    lengths: Integers

    def take(self, rows: NDArray[np.intp]) -> tuple[Integers, NDArray[np.intp], NDArray[np.intp]]:
        """Return the entries of some requests, with their place among ``rows`` and their index in their own list."""
        ends = np.cumsum(self.lengths, dtype=np.int64)
        lengths = self.lengths[rows]
        owners = np.repeat(np.arange(len(rows)), lengths)
        firsts = np.cumsum(lengths, dtype=np.int64) - lengths
        indices = np.arange(len(owners)) - firsts[owners]
        return self.values[(ends[rows] - lengths)[owners] + indices], owners, indices


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """What the requests state, (requests,) each; ``ABSENT`` where one does not.

    Attributes:
        counts: by the name of a field in ``FIELDS``, and ``completion_tokens``.
        num_turns: tokens of the output that came from a prefill.
        group: number of the request's group, ``ABSENT`` for none.
        derived: a bit for each field that is derived.
        estimated: a bit for each field that is estimated.
        histogram: acceptance histograms; no entries where there is none.
        drafted: steps that drafted each position, as far as that is known.
        knows_drafted: whether positions behind those in ``drafted`` were never drafted, or else are not known.
    """

    counts: dict[str, Integers]
    num_turns: Integers
    group: Integers
    derived: Integers
    estimated: Integers
    histogram: Ragged
    drafted: Ragged
    knows_drafted: Integers

    def __len__(self) -> int:
        return len(self.group)

    def known(self, field: str) -> Flags:
        """Whether each request states the field, exactly or derived."""
        known: Flags = (self.counts[field] != ABSENT) & ~self.is_estimated(field)
        return known

    def is_derived(self, field: str) -> Flags:
        """Whether each request's number would be derived, if it has one."""
        derived: Flags = self.derived >> MARKED.index(field) & 1 == 1
        return derived

    def is_estimated(self, field: str) -> Flags:
        """Whether each request's number would be an estimate, if it has one."""
        estimated: Flags = self.estimated >> MARKED.index(field) & 1 == 1
        return estimated
