"""Acceptance by position in the draft: how often a token at position i was drafted, and how often it matched."""

from collections.abc import Sequence
from typing import Any

from batchspec.report.ratios import ratio

__all__ = ["drafted_per_position", "per_position_document", "survivors"]


def survivors(histogram: Sequence[int]) -> list[int]:
    """Return for each position i the steps that accepted it: the sum over j > i of histogram[j]."""
    return [sum(histogram[i + 1 :]) for i in range(len(histogram) - 1)]


def drafted_per_position(
    *, num_spec_steps: int, num_draft_tokens: int, num_spec_tokens: int, per_step_drafted: Sequence[int] | None = None
) -> list[int | None]:
    """Return for each position i the steps whose draft was longer than i; None where the numbers do not tell.

    Nothing is estimated from the configured length. Without the per-step lengths the answer is known for position 0
    (every step has a draft), for all positions when the drafted total says that every draft was full, and for
    position 1 when it is the last one.

    Args:
        num_spec_steps: verification steps.
        num_draft_tokens: draft tokens of these steps.
        num_spec_tokens: the configured k.
        per_step_drafted: the length of each draft, if it was recorded.
    """
    if per_step_drafted is not None and len(per_step_drafted) == num_spec_steps:
        return [sum(length > i for length in per_step_drafted) for i in range(num_spec_tokens)]
    if num_draft_tokens == num_spec_steps * num_spec_tokens:
        return [num_spec_steps] * num_spec_tokens
    if num_spec_tokens == 2:
        return [num_spec_steps, num_draft_tokens - num_spec_steps]
    return [num_spec_steps if i == 0 else None for i in range(num_spec_tokens)]


def per_position_document(
    *, num_spec_steps: int, num_accepted: Sequence[int], num_drafted: Sequence[int | None]
) -> list[dict[str, Any]]:
    """Return one entry for each position of the draft.

    Args:
        num_spec_steps: verification steps, the denominator of the marginal rate.
        num_accepted: (k,) steps that accepted the token at each position.
        num_drafted: (k,) steps that drafted it, the denominator of the conditional rate; None where unknown.
    """
    return [
        {
            "position": position,
            "num_drafted": drafted,
            "num_accepted": accepted,
            "marginal_rate": ratio(accepted, num_spec_steps),
            "conditional_rate": None if drafted is None else ratio(accepted, drafted),
        }
        for position, (accepted, drafted) in enumerate(zip(num_accepted, num_drafted, strict=True))
    ]
