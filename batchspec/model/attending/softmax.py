"""A row of scores becomes weights."""

from typing import Any

import numpy as np

from batchspec.compiled import inner
from batchspec.model.attending.exponential import exp, tanh
from batchspec.model.attending.lanes import add, larger, largest, load, multiply, spread, store, total
from batchspec.model.attending.vectors import LANES

__all__ = ["weigh"]


@inner
def weigh(scores: Any, at: int, count: int, softcap: float, sink: float) -> Any:
    """Turn ``count`` scores into weights in proportion to their probabilities; return what makes them sum up to one.

    A sink takes part as one more score. It and what fills the last vector, -inf, are written behind the scores, where
    up to ``LANES`` numbers are lost. Where a row begins says which lane sums up what; nothing else does.
    """
    if softcap > 0.0:
        _cap(scores, at, count, softcap)
    end = at + -(-(count + 1) // LANES) * LANES
    scores[at + count : end] = -np.inf
    scores[at + count] = sink
    top = spread(-np.inf)
    for i in range(at, end, LANES):
        top = larger(load(scores, i), top)
    less = spread(-largest(top))
    sums = spread(0.0)
    for i in range(at, end, LANES):
        weights = exp(add(load(scores, i), less))
        store(scores, i, weights)
        sums = add(sums, weights)
    return np.float32(1.0) / total(sums)


@inner
def _cap(scores: Any, at: int, count: int, softcap: float) -> None:
    """Turn scores s into ``softcap * tanh(s / softcap)``, and some more behind them into anything."""
    cap, inverse = spread(softcap), spread(1.0 / softcap)
    for i in range(at, at + count, LANES):
        store(scores, i, multiply(cap, tanh(multiply(load(scores, i), inverse))))
