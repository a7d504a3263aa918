"""What the layout of a step needs to know of a sequence."""

from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchspec.step import StepPlan

__all__ = ["Span", "spans_of"]


@dataclass(frozen=True, kw_only=True)
class Span:
    """Rows of one sequence that are computed in a step.

    Attributes:
        token_ids: int64 (rows,).
        start: position of the first of them.
        blocks: the sequence's blocks, in order.
    """

    token_ids: NDArray[np.int64]
    start: int
    blocks: Many[int]


def spans_of(plan: StepPlan) -> list[Span]:
    """Return the plan's chunks, one span for each."""
    return [Span(token_ids=chunk.token_ids, start=chunk.start, blocks=chunk.sequence.blocks) for chunk in plan.chunks]
