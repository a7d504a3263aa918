"""Drafts cut to what pays, by what became of earlier ones and by what steps took: see ``choosing``."""

import time
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import replace

from batchspec.drafting.choosing import choose
from batchspec.drafting.costs import StepCosts
from batchspec.drafting.estimates import AcceptanceEstimates
from batchspec.drafting.generations import Generations
from batchspec.drafting.interface import Drafter
from batchspec.drafting.trials import Trials
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome

__all__ = ["AdaptiveDrafter"]

_MOST_SAMPLES = 9  # that a median is taken of
_WEIGHT = 1 / 8  # of the latest decision in what asking is taken to bring
_MOST_WORTH = 1.0  # of a single decision, so that a great one is forgotten soon
_FIRST_WORTH = 0.2  # before anything is known
_TRIALS = 16  # sequences for each of which a token is tried although it does not pay: it could by now
_SHARE = 0.01  # of the time that asking without avail may take


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
        self._worth = _FIRST_WORTH  # share of a step that asking brings, its own time taken off: a moving mean
        self._unproven: tuple[float, float] | None = None  # gain expected of the drafts, seconds that they took
        self._num_skipped = 0  # steps without asking since the last
        self._is_warm = False  # whether drafts were verified already: the first time, code is loaded for that
        self._trials = Trials()

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
        """Whether to ask the inner drafter; where that costs more than it brings, only now and then."""
        if not self.costs.is_known(num_sequences):
            return False
        self._num_skipped += 1
        if self._worth <= 0:
            plain = float(self.costs.by_rows()[num_sequences])
            if self._num_skipped * _SHARE * plain < self._usual_drafting():
                return False
        self._num_skipped = 0
        return True

    def _choose(self, decoding: Many[Sequence]) -> list[Draft]:
        started = self._clock()
        drafts = self.inner.propose(decoding)
        survival = [self.estimates.survival(draft) for draft in drafts]
        choice = choose(len(decoding), survival, self.costs, drafting=self._usual_drafting())
        lengths = choice.lengths
        took = self._clock() - started
        if any(lengths):
            self._trials.begin_anew()
            self._unproven = choice.gain, took
        else:
            self._judge(choice.gain)
            if drafts and self._trials.is_time():
                lengths = _trial(len(drafts), 1 + len(decoding) // _TRIALS)
        self._drafting.append(took)
        return [_cut(draft, length) for draft, length in zip(drafts, lengths, strict=True) if length]

    def _judge(self, gain: float) -> None:
        """Note how many times as fast a step was for which the inner drafter was asked, as without."""
        self._worth += _WEIGHT * (min(gain - 1, _MOST_WORTH) - self._worth)

    def _usual_drafting(self) -> float:
        """Return the median of the seconds that the inner drafter took."""
        return sorted(self._drafting)[len(self._drafting) // 2]

    def observe(self, outcomes: Many[Outcome], *, num_rows: int) -> None:
        """Learn what became of the drafts, and what a step took that did nothing but decode."""
        self.inner.observe(outcomes, num_rows=num_rows)
        for outcome in outcomes:
            draft = self._kept.get(id(outcome.sequence))
            if draft is not None and outcome.num_drafted and outcome.source == draft.source:
                self.estimates.observe(draft, num_tried=outcome.num_drafted, num_accepted=outcome.num_accepted)
        num_drafted = sum(outcome.num_drafted for outcome in outcomes)
        is_pure = num_rows == len(outcomes) + num_drafted
        if is_pure and self._started is not None and (self._is_warm or not num_drafted):
            self._learn_of_a_step(outcomes, num_rows=num_rows, seconds=self._clock() - self._started)
        elif self._unproven is not None:
            self._judge(self._unproven[0])
        self._unproven = None
        self._is_warm |= num_drafted > 0

    def _learn_of_a_step(self, outcomes: Many[Outcome], *, num_rows: int, seconds: float) -> None:
        """Learn what a step took, and whether its drafts made up for what they took: that may be less than expected."""
        self.costs.observe(num_rows=num_rows, seconds=seconds)
        if self._unproven is not None:
            num_tokens = sum(1 + outcome.num_accepted for outcome in outcomes)
            plain = float(self.costs.by_rows()[len(outcomes)]) / max(1, len(outcomes))
            self._judge(num_tokens * plain / (seconds + self._unproven[1]))

    def end(self, sequence: Sequence) -> None:
        """Tell the inner drafter."""
        self.inner.end(sequence)


def _cut(draft: Draft, length: int) -> Draft:
    if length == len(draft.token_ids):
        return draft
    probs = None if draft.token_probs is None else draft.token_probs[:length]
    return replace(draft, token_ids=draft.token_ids[:length], token_probs=probs)


def _trial(num_drafts: int, number: int) -> list[int]:
    """Return lengths that keep one token of the first drafts, and nothing of the others."""
    return [int(index < number) for index in range(num_drafts)]
