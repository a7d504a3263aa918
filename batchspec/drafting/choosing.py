"""Which draft tokens of a step pay for their rows.

A step over n sequences and m draft tokens takes T(n + m) seconds and brings n + (sum of their survival probabilities)
tokens. The m likeliest tokens with the greatest quotient are taken; since survival never grows along a draft, they are
the beginnings of drafts. This is the goodput of TurboSpec (Liu et al., arXiv 2406.14066) with the choice across
requests of TETRIS (Wu et al., arXiv 2502.15197).
"""

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.compiled import compiled
from batchspec.drafting.costs import StepCosts

__all__ = ["Choice", "choose"]


_LEAST_GAIN = 1.02  # times as fast as without drafts, to have any: the best of many estimates is one that is too high


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How much of each draft is kept.

    Attributes:
        lengths: leading tokens of each draft.
        gain: how many times as fast the step is with them, the making of the drafts included, as without any.
    """

    lengths: list[int]
    gain: float


def choose(
    num_sequences: int, survival: Many[NDArray[np.float64]], costs: StepCosts, *, drafting: float = 0.0
) -> Choice:
    """Return the choice that brings most tokens a second.

    Args:
        num_sequences: that decode.
        survival: float64 (tokens,) for each draft, how likely a token and all before it are accepted.
        costs: of steps.
        drafting: seconds that it took to make the drafts.
    """
    seconds = costs.by_rows()
    if not survival:
        return Choice(lengths=[], gain=float(seconds[num_sequences] / (seconds[num_sequences] + drafting)))
    chances = survival[0] if len(survival) == 1 else np.concatenate(survival)
    sizes = np.array([len(each) for each in survival])
    lengths = np.zeros(len(survival), dtype=np.int64)
    gain = float(_best(num_sequences, chances, sizes, seconds, drafting, lengths))
    return Choice(lengths=lengths.tolist(), gain=gain)


@compiled()
def _best(num_sequences: int, chances: Any, sizes: Any, seconds: Any, drafting: float, lengths: Any) -> Any:
    """Fill in how many of each draft's chances to take, which fall, and return what the step then gains."""
    order = np.argsort(-chances, kind="mergesort")
    number, tokens = 0, float(num_sequences)
    best, best_tokens = _LEAST_GAIN * tokens / seconds[num_sequences], tokens
    for place in range(min(len(chances), len(seconds) - 1 - num_sequences)):
        tokens += chances[order[place]]
        rate = tokens / seconds[num_sequences + place + 1]
        if rate > best:
            number, best, best_tokens = place + 1, rate, tokens
    ends = np.cumsum(sizes)
    for place in order[:number]:
        lengths[np.searchsorted(ends, place, side="right")] += 1
    return best_tokens / (seconds[num_sequences + number] + drafting) * seconds[num_sequences] / num_sequences
