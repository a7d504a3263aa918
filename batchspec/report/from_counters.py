"""Acceptance from the Prometheus totals alone, for a run whose records carry no metrics."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from batchspec.report.positions import drafted_per_position, per_position_document
from batchspec.report.ratios import acceptance_length, ratio

__all__ = ["acceptance_from_counters"]


def acceptance_from_counters(totals: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the ``acceptance`` document that the counters allow; None when they have no position (speculation off).

    Counters know no request, so the mean over requests and everything about emitted tokens is None.

    Args:
        totals: in the shape that ``Counters.totals`` has.
    """
    accepted_per_pos: list[int] = list(totals["num_accepted_tokens_per_pos"])
    if not accepted_per_pos:
        return None
    num_steps, num_drafted = totals["num_spec_steps"], totals["num_draft_tokens"]
    num_accepted, num_spec_tokens = totals["num_accepted_draft_tokens"], len(accepted_per_pos)
    drafted = drafted_per_position(
        num_spec_steps=num_steps, num_draft_tokens=num_drafted, num_spec_tokens=num_spec_tokens
    )
    return {
        "source": "counters",
        "num_spec_tokens": num_spec_tokens,
        "pooled": {
            "mean_acceptance_length": acceptance_length(num_accepted=num_accepted, num_steps=num_steps),
            "draft_acceptance_rate": ratio(num_accepted, num_drafted),
            "acceptance_histogram": _histogram(num_steps, accepted_per_pos, num_accepted=num_accepted),
            "num_spec_steps": num_steps,
            "num_accepted_draft_tokens": num_accepted,
            "num_draft_tokens": num_drafted,
            "num_decode_steps": None,
            "num_discarded_tokens": None,
            "tokens_per_decode_step": None,
            "num_requests": None,
        },
        "mean_over_requests": None,
        "per_position": per_position_document(
            num_spec_steps=num_steps, num_accepted=accepted_per_pos, num_drafted=drafted
        ),
        "num_inconsistent_requests": 0,
    }


def _histogram(num_steps: int, accepted_per_pos: list[int], *, num_accepted: int) -> list[int] | None:
    """Return the acceptance histogram; None when the totals contradict each other.

    A step that accepts position i has accepted all before it, so the steps that accepted exactly j tokens are the
    survivors at j - 1 less those at j, with every step surviving before position 0.
    """
    survivors = [num_steps, *accepted_per_pos, 0]
    histogram = [before - after for before, after in pairwise(survivors)]
    is_exact = sum(accepted_per_pos) == num_accepted and min(histogram) >= 0
    return histogram if is_exact else None
