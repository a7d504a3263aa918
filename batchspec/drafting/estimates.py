"""How likely draft tokens are to be accepted, from what became of earlier ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.compiled import compiled
from batchspec.step import Draft

__all__ = ["AcceptanceEstimates"]

_STRENGTH = 4.0  # tokens that the first guess counts for
_FIRST_GUESS = 0.6  # for drafters that have no idea themselves
_MOST_COUNTED = 256  # tokens of a kind, after which half of them are forgotten: texts change
_NUM_LENGTHS = 18  # doublings of a matched length that are told apart
_NUM_PROBS = 12  # tenths of the drafter's own probability, and one for none
_NO_PROBS = np.zeros(0)


@compiled()
def _survival(tried: Any, accepted: Any, match_length: int, probs: Any, survival: Any) -> None:
    """Fill in how likely each token and all before it are accepted."""
    reached = 1.0
    for number in range(len(survival)):
        length, tenths, guess = _kind(match_length + number, probs, number)
        num_tried, num_accepted = tried[length, tenths], accepted[length, tenths]
        reached *= (num_accepted + _STRENGTH * guess) / (num_tried + _STRENGTH)
        survival[number] = reached


@compiled()
def _count(tried: Any, accepted: Any, match_length: int, probs: Any, num_reached: int, num_accepted: int) -> None:
    """Count the tokens that were reached, the leading ones of which were accepted."""
    for number in range(num_reached):
        length, tenths, _ = _kind(match_length + number, probs, number)
        if tried[length, tenths] >= _MOST_COUNTED:
            tried[length, tenths] //= 2
            accepted[length, tenths] //= 2
        tried[length, tenths] += 1
        accepted[length, tenths] += number < num_accepted


@compiled()
def _kind(length: int, probs: Any, number: int) -> tuple[int, int, float]:
    """Return the kind of a token, and the first guess of its acceptance."""
    doublings = 0
    while length and doublings < _NUM_LENGTHS - 1:
        length >>= 1
        doublings += 1
    if not len(probs):
        return doublings, _NUM_PROBS - 1, _FIRST_GUESS
    return doublings, int(10 * probs[number]), probs[number]


class AcceptanceEstimates:
    """Counts, for each kind of draft token, how many were tried and how many accepted.

    A token is tried when all before it in its draft were accepted. Its kind is where it is from, how long a context it
    continues, and what its drafter thought of it; the estimate is the mean of a beta distribution that begins at what
    the drafter thought.
    """

    def __init__(self) -> None:
        self._tables: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def survival(self, draft: Draft) -> NDArray[np.float64]:
        """Return, for each token of a draft, how likely it and all before it are accepted: float64 (tokens,)."""
        survival = np.empty(len(draft.token_ids))
        _survival(*self._table(draft), draft.match_length, _probs(draft), survival)
        return survival

    def observe(self, draft: Draft, *, num_tried: int, num_accepted: int) -> None:
        """Count what became of a draft.

        Args:
            draft: the proposal.
            num_tried: tokens of it that were verified; a step may cut a draft.
            num_accepted: leading tokens that were accepted.
        """
        num_reached = min(num_tried, num_accepted + 1, len(draft.token_ids))
        _count(*self._table(draft), draft.match_length, _probs(draft), num_reached, num_accepted)

    def _table(self, draft: Draft) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        table = self._tables.get(draft.source)
        if table is None:
            shape = (_NUM_LENGTHS, _NUM_PROBS)
            table = self._tables[draft.source] = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        return table


def _probs(draft: Draft) -> NDArray[np.float64]:
    return _NO_PROBS if draft.token_probs is None else np.array(draft.token_probs)
