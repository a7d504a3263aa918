"""What the counters have beyond the responses: whether verification steps can have counted that."""

from collections.abc import Mapping
from itertools import pairwise

from batchspec.audit.counts import PER_POSITION
from batchspec.reconcile.between import Count

__all__ = ["NAMES", "impossible", "label"]

NAMES = {
    "num_spec_steps": "steps",
    "num_draft_tokens": "drafted",
    "num_accepted_draft_tokens": "accepted",
}


def label(key: Count) -> str:
    """Return how a count is named in a table and in a sentence."""
    quantity, position = key
    return NAMES.get(quantity, quantity) if position is None else f"accepted at position {position}"


def impossible(gap: Mapping[Count, int], *, num_spec_tokens: int) -> str | None:
    """Return why no set of verification steps adds up to this, None when some does.

    Args:
        gap: counters minus responses; counts that are not known are left out.
        num_spec_tokens: the longest draft, 0 when it is not known.
    """
    for key, count in gap.items():
        if count < 0:
            return (
                f"the responses state {-count:,} more than the counters counted ({label(key)}): some are from outside "
                "the scrape window, or of an engine that was not scraped"
            )
    fault = _broken_order(gap, num_spec_tokens) or _broken_positions(gap)
    return fault and f"the counters have something beyond the responses that no steps can have counted: {fault}"


def _broken_order(gap: Mapping[Count, int], num_spec_tokens: int) -> str | None:
    """Return what is greater than it can be among the totals."""
    steps, drafted, accepted = (gap.get((name, None)) for name in NAMES)
    first = gap.get((PER_POSITION, 0))
    room = steps * num_spec_tokens if steps is not None and num_spec_tokens else None
    orders = {
        "steps for {more:,} draft tokens, one at least in each": (steps, drafted),
        "draft tokens where its steps hold {more:,}": (drafted, room),
        "accepted of {more:,} drafted tokens": (accepted, drafted),
        "tokens accepted first in {more:,} steps": (first, steps),
    }
    for fault, (less, more) in orders.items():
        if less is not None and more is not None and less > more:
            return f"{less:,} {fault.format(more=more)}"
    return None


def _broken_positions(gap: Mapping[Count, int]) -> str | None:
    """Return what is wrong among the positions."""
    positions = sorted(
        (position or 0, count) for (quantity, position), count in gap.items() if quantity == PER_POSITION
    )
    survivors = [count for _, count in positions]
    for (position, earlier), (_, later) in pairwise(positions):
        if later > earlier:
            return f"{later:,} tokens accepted behind position {position}, {earlier:,} at it"
    accepted = gap.get(("num_accepted_draft_tokens", None))
    if survivors and accepted is not None and sum(survivors) != accepted:
        return f"{accepted:,} accepted tokens, {sum(survivors):,} over the positions"
    return None
