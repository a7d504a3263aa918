"""Drafts cut to what pays: over all sequences, the tokens whose rows bring more tokens a second than they cost.

A step over n sequences and m draft tokens takes T(n + m) seconds and brings n + (sum of their survival probabilities)
tokens. The m likeliest tokens with the greatest quotient are admitted; since survival never grows along a draft, they
are the beginnings of drafts. This is the goodput of TurboSpec (Liu et al., arXiv 2406.14066) with the choice across
requests of TETRIS (Wu et al., arXiv 2502.15197), by times measured while running.
"""

import time
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import replace
from statistics import median

import numpy as np

from batchspec.drafting.costs import StepCosts
from batchspec.drafting.estimates import AcceptanceEstimates
from batchspec.drafting.generations import Generations
from batchspec.drafting.interface import Drafter
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome

__all__ = ["AdaptiveDrafter", "best_number"]

_MOST_SAMPLES = 9  # that a median is taken of
_MISSES = 3  # decisions in a row after which the inner drafter is asked less often
_MOST_SKIPPED = 64  # steps, unless asking takes longer than it may
_SHARE = 0.02  # of the time that asking without avail may take


class AdaptiveDrafter:
    """Asks another drafter, and keeps of its drafts what pays.

    Args:
        inner: the drafter to ask.
        estimates: of acceptance; may be shared with ``inner``, which then must not observe for itself.
        costs: of steps.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        inner: Drafter,
        *,
        estimates: AcceptanceEstimates,
        costs: StepCosts,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self.inner = inner
        self.estimates = estimates
        self.costs = costs
        self._clock = clock
        self._kept: dict[int, Draft] = {}
        self._started: float | None = None
        self._drafting = deque([0.0], maxlen=_MOST_SAMPLES)  # seconds that the inner drafter took
        self._num_misses = 0  # decisions in a row by which drafting does not pay
        self._num_skipped = 0  # steps without asking since the last

    @property
    def num_spec_tokens(self) -> int:
        """The most tokens in one draft (k)."""
        return self.inner.num_spec_tokens

    @property
    def generations(self) -> Generations | None:
        """Those of the inner drafter."""
        return self.inner.generations

    def begin(self, sequence: Sequence) -> None:
        """Tell the inner drafter."""
        self.inner.begin(sequence)

    def is_ready(self, sequence: Sequence) -> bool:
        """Ask the inner drafter."""
        return self.inner.is_ready(sequence)

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        """Return what pays of the inner drafts; none while it is unknown what a step without them takes."""
        kept = self._choose(decoding) if decoding and self._is_worth_asking(len(decoding)) else []
        self._kept = {id(draft.sequence): draft for draft in kept}
        self._started = self._clock()
        return kept

    def _is_worth_asking(self, num_sequences: int) -> bool:
        """Whether to ask the inner drafter; where that did not pay again and again, only now and then."""
        if not self.costs.is_known(num_sequences):
            return False
        self._num_skipped += 1
        if self._num_misses >= _MISSES:
            plain = float(self.costs.seconds(np.array([num_sequences]))[0])
            pause = median(self._drafting) / (_SHARE * plain) if plain else 0.0
            if self._num_skipped < max(pause, min(_MOST_SKIPPED, 2 ** (self._num_misses - _MISSES))):
                return False
        self._num_skipped = 0
        return True

    def _choose(self, decoding: Many[Sequence]) -> list[Draft]:
        started = self._clock()
        drafts = self.inner.propose(decoding)
        self._drafting.append(self._clock() - started)
        survival = [self.estimates.survival(draft) for draft in drafts]
        number, gain = best_number(len(decoding), survival, self.costs, drafting=median(self._drafting))
        self._num_misses = 0 if gain > 1 else self._num_misses + 1
        lengths = _lengths(survival, number)
        return [_cut(draft, length) for draft, length in zip(drafts, lengths, strict=True) if length]

    def observe(self, outcomes: Many[Outcome], *, num_rows: int) -> None:
        """Learn what became of the drafts, and what a step took that did nothing but decode."""
        self.inner.observe(outcomes, num_rows=num_rows)
        for outcome in outcomes:
            draft = self._kept.get(id(outcome.sequence))
            if draft is not None and outcome.num_drafted and outcome.source == draft.source:
                self.estimates.observe(draft, num_tried=outcome.num_drafted, num_accepted=outcome.num_accepted)
        is_pure = num_rows == sum(1 + outcome.num_drafted for outcome in outcomes)
        if is_pure and self._started is not None:
            self.costs.observe(num_rows=num_rows, seconds=self._clock() - self._started)

    def end(self, sequence: Sequence) -> None:
        """Tell the inner drafter."""
        self.inner.end(sequence)


def best_number(
    num_sequences: int, survival: list[list[float]], costs: StepCosts, *, drafting: float = 0.0
) -> tuple[int, float]:
    """Return how many draft tokens to admit, the likeliest first, for the most tokens a second.

    Args:
        num_sequences: that decode.
        survival: of each draft's tokens.
        costs: of steps.
        drafting: seconds that it took to make the drafts.

    Returns:
        The number, and how many times as fast the step is with them, their making included, as without any.
    """
    chances = np.sort(np.array([chance for each in survival for chance in each]))[::-1]
    numbers = np.arange(1 + max(0, min(len(chances), costs.most_rows - num_sequences)))
    chances = chances[: len(numbers) - 1]
    gains = num_sequences + np.concatenate([[0.0], np.cumsum(chances)])
    seconds = costs.seconds(num_sequences + numbers)
    best = int(np.argmax(gains / seconds))
    return best, float(gains[best] / (seconds[best] + drafting) * seconds[0] / num_sequences)


def _cut(draft: Draft, length: int) -> Draft:
    probs = None if draft.token_probs is None else draft.token_probs[:length]
    return replace(draft, token_ids=draft.token_ids[:length], token_probs=probs)


def _lengths(survival: list[list[float]], number: int) -> list[int]:
    """Return how much of each draft is kept when the ``number`` likeliest tokens of all are."""
    ranked = sorted((-chance, place, index) for index, each in enumerate(survival) for place, chance in enumerate(each))
    lengths = [0] * len(survival)
    for _, _, index in ranked[:number]:
        lengths[index] += 1
    return lengths
