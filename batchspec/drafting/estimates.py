"""How likely draft tokens are to be accepted, from what became of earlier ones."""

from collections.abc import Iterable

import numpy as np

from batchspec.step import Draft

__all__ = ["AcceptanceEstimates"]

_STRENGTH = 4.0  # tokens that the first guess counts for
_FIRST_GUESS = 0.6  # for drafters that have no idea themselves

Kind = tuple[str, int, int]
"""Source, logarithm of the matched length, and tenths of the drafter's own probability; -1 where it has none."""


class AcceptanceEstimates:
    """Counts, for each kind of draft token, how many were tried and how many accepted.

    A token is tried when all before it in its draft were accepted. Its kind is where it is from, how long a context it
    continues, and what its drafter thought of it; the estimate is the mean of a beta distribution that begins at what
    the drafter thought.
    """

    def __init__(self) -> None:
        self._tried: dict[Kind, int] = {}
        self._accepted: dict[Kind, int] = {}

    def survival(self, draft: Draft) -> list[float]:
        """Return, for each token of a draft, how likely it and all before it are accepted."""
        each = [self._estimate(kind, guess) for kind, guess in _kinds(draft)]
        return [float(value) for value in np.cumprod(each)]

    def observe(self, draft: Draft, *, num_tried: int, num_accepted: int) -> None:
        """Count what became of a draft.

        Args:
            draft: the proposal.
            num_tried: tokens of it that were verified; a step may cut a draft.
            num_accepted: leading tokens that were accepted.
        """
        reached = min(num_tried, num_accepted + 1)
        for number, (kind, _) in zip(range(reached), _kinds(draft), strict=False):
            self._tried[kind] = self._tried.get(kind, 0) + 1
            self._accepted[kind] = self._accepted.get(kind, 0) + (number < num_accepted)

    def _estimate(self, kind: Kind, guess: float) -> float:
        tried, accepted = self._tried.get(kind, 0), self._accepted.get(kind, 0)
        return (accepted + _STRENGTH * guess) / (tried + _STRENGTH)


def _kinds(draft: Draft) -> Iterable[tuple[Kind, float]]:
    """Yield the kind of each token, and the first guess of its acceptance."""
    for number in range(len(draft.token_ids)):
        prob = None if draft.token_probs is None else draft.token_probs[number]
        length = (draft.match_length + number).bit_length()
        yield (draft.source, length, -1 if prob is None else int(10 * prob)), _FIRST_GUESS if prob is None else prob
