"""How acceptance changes along the output: steps and accepted tokens by the output position at which a step began."""

from array import array
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.ingest import Acceptance
from batchspec.report.ratios import acceptance_length

__all__ = ["OverOutput"]

_FINEST = 16
_MAX_BINS = 2**16
_MAX_SHOWN = 32
_BUFFERED = 2**16

Counts = NDArray[np.int64]


class OverOutput:
    """Adds up steps in bins of output positions, in constant memory; behind a million tokens all fall in the last bin.

    Only ``detailed`` records tell their steps one by one. Where they do not tell the positions, too, the steps are
    taken to follow each other without a decode step in between, which is an estimate: too early where there were some.
    """

    def __init__(self) -> None:
        self._positions, self._accepted = array("i"), array("i")
        self._num_steps, self._num_accepted = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._num_requests = self._num_estimated = 0

    def add(self, acceptance: Acceptance) -> None:
        """Add the steps of one request; nothing if it does not tell them."""
        accepted = acceptance.per_step_accepted
        if not accepted:
            return
        positions = acceptance.per_step_position
        if positions is None:
            positions = list(accumulate((number + 1 for number in accepted[:-1]), initial=1))
            self._num_estimated += 1
        self._num_requests += 1
        self._positions.extend(min(position, 2**31 - 1) for position in positions)
        self._accepted.extend(accepted)
        if len(self._positions) > _BUFFERED:
            self._flush()

    def _flush(self) -> None:
        """Move what is buffered into the bins."""
        bins = np.minimum(np.frombuffer(self._positions, dtype=np.int32) // _FINEST, _MAX_BINS - 1)
        accepted = np.frombuffer(self._accepted, dtype=np.int32)
        self._num_steps = _sum(self._num_steps, np.bincount(bins))
        self._num_accepted = _sum(self._num_accepted, np.bincount(bins, weights=accepted).astype(np.int64))
        self._positions, self._accepted = array("i"), array("i")

    def document(self) -> dict[str, Any] | None:
        """Return at most 32 bins of equal width, in output tokens; None where no request tells its steps."""
        if not self._num_requests:
            return None
        self._flush()
        width, steps, accepted = _FINEST, self._num_steps, self._num_accepted
        while len(steps) > _MAX_SHOWN:
            width, steps, accepted = width * 2, _halved(steps), _halved(accepted)
        return {
            "num_requests": self._num_requests,
            "num_requests_with_estimated_positions": self._num_estimated,
            "bins": [
                {
                    "first_position": index * width,
                    "end_position": (index + 1) * width,
                    "num_spec_steps": int(number),
                    "num_accepted_draft_tokens": int(matched),
                    "mean_acceptance_length": acceptance_length(num_accepted=int(matched), num_steps=int(number)),
                }
                for index, (number, matched) in enumerate(zip(steps, accepted, strict=True))
            ],
        }


def _sum(one: Counts, other: Counts) -> Counts:
    """Return the sum of two arrays, the shorter one filled up with zeros."""
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total


def _halved(counts: Counts) -> Counts:
    """Return the counts of bins twice as wide."""
    halved: Counts = np.pad(counts, (0, len(counts) % 2)).reshape(-1, 2).sum(axis=1)
    return halved
