"""What one response states of its drafts, as the counts that a server's counters have, too."""

from typing import Any

from batchspec.ingest import Acceptance, LogRecord, Origin
from batchspec.reconcile import AcceptanceSums
from batchspec.reconcile.between import Count

__all__ = ["FINISHED", "PER_POSITION", "SCALARS", "num_sequences", "stated_counts"]

SCALARS = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
PER_POSITION = "num_accepted_tokens_per_pos"
FINISHED: Count = ("num_finished_sequences", None)


def num_sequences(row: LogRecord) -> int:
    """Return how many outputs a record is about, each of which a server counts as one sequence that ended."""
    return row.num_choices if row.choice is None else 1


def stated_counts(acceptance: Acceptance) -> tuple[dict[Count, int], frozenset[str]]:
    """Return the counts that a response states, and the names of the quantities that it leaves out or estimates.

    A count that follows from others by an identity is as good as a stated one; an estimate is none.
    """
    counts: dict[Count, int] = {}
    for name in SCALARS:
        value = _exact(acceptance, name)
        if value is not None:
            counts[name, None] = value
    histogram = _exact(acceptance, "acceptance_histogram")
    if histogram is not None:
        sums = AcceptanceSums.from_histogram(histogram, 0)
        counts |= {(PER_POSITION, i): count for i, count in enumerate(sums.num_accepted_tokens_per_pos)}
    missing = [name for name in SCALARS if (name, None) not in counts]
    return counts, frozenset([*missing, *([PER_POSITION] if histogram is None else [])])


def _exact(acceptance: Acceptance, name: str) -> Any:
    """Return the value of a field, None where it is absent or estimated."""
    return None if acceptance.origin(name) is Origin.ESTIMATED else getattr(acceptance, name)
