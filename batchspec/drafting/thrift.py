"""How much to ask of a draft model, whose work takes time whether its drafts are used or not.

Over n sequences, of which drafts of k tokens are asked for m, a step is expected to bring n + m (s_1 + ... + s_k)
tokens in T(n + m k) + k D(m) seconds: s_i is how likely a draft's first i tokens are accepted, T what the target's
steps take and D what the draft model takes for a token of each. It is asked for the k with the greatest quotient, if
that is greater than n / T(n), as in ``choosing``.
"""

import time
from collections.abc import Callable
from collections.abc import Sequence as Many

import numpy as np
from numpy.typing import NDArray

from batchspec.drafting.costs import StepCosts
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.drafting.estimates import AcceptanceEstimates
from batchspec.drafting.passes import Passes
from batchspec.drafting.trials import Trials
from batchspec.sequence import Sequence
from batchspec.step import Draft

__all__ = ["Thrift"]

_FEW = 16  # sequences for each of which one is asked for where that is not known to pay
_TRIAL_TOKENS = 2
_WEIGHT = 1 / 4  # of the latest drafts in what is expected of the next


class Thrift:
    """Asks a draft model for as much as pays, and for a little now and then where nothing does.

    Args:
        drafter: whom to ask.
        costs: of the target's steps.
        estimates: of acceptance.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        drafter: DraftModelDrafter,
        *,
        costs: StepCosts,
        estimates: AcceptanceEstimates,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._drafter = drafter
        self._costs = costs
        self._estimates = estimates
        self._clock = clock
        self._passes = Passes()  # of the draft model, one token of each sequence
        self._survival: NDArray[np.float64] = np.empty(0)  # means, as far as drafts went
        self._trials = Trials()

    def ask(self, poor: Many[Sequence], *, num_decoding: int) -> list[Draft]:
        """Return drafts of some of the sequences, or of none.

        Args:
            poor: the sequences that have too little.
            num_decoding: all that decode in this step.
        """
        num_tokens = self._best_length(len(poor), num_decoding, most=self._drafter.num_spec_tokens)
        if num_tokens:
            self._trials.begin_anew()
        elif self._trials.is_time():
            poor, num_tokens = poor[: 1 + len(poor) // _FEW], min(_TRIAL_TOKENS, self._drafter.num_spec_tokens)
        else:
            return []
        started = self._clock()
        drafts = self._drafter.propose(poor, num_tokens=num_tokens)
        self._passes.observe(num_sequences=len(poor), seconds=(self._clock() - started) / num_tokens)
        self._passes.age(num_sequences=len(poor))
        self._learn(drafts, num_tokens)
        return drafts

    def _best_length(self, num_asked: int, num_decoding: int, *, most: int) -> int:
        """Return for how many tokens it pays to ask; 0 for none, or where nothing is known yet."""
        if not len(self._survival) or not self._costs.is_known(num_decoding):
            return 0
        seconds = self._costs.by_rows()
        lengths = np.arange(1, most + 1)
        tokens = num_decoding + num_asked * np.cumsum(self._expected(most))
        rows = num_decoding + num_asked * lengths
        beyond = np.maximum(0, rows - (len(seconds) - 1)) * (seconds[-1] - seconds[-2])  # as its last rows
        took = seconds[np.minimum(rows, len(seconds) - 1)] + beyond
        took += lengths * self._passes.expected(num_asked)
        rates = np.concatenate(([num_decoding / seconds[num_decoding]], tokens / took))
        return int(np.argmax(rates))

    def _expected(self, num_tokens: int) -> NDArray[np.float64]:
        """Return how likely so many tokens of a draft survive; those beyond what is known at the last known rate."""
        known = self._survival[:num_tokens]
        if len(known) == num_tokens:
            return known
        before = self._survival[-2] if len(self._survival) > 1 else 1.0
        ratio = self._survival[-1] / before if before else 0.0
        return np.concatenate((known, self._survival[-1] * ratio ** np.arange(1, num_tokens - len(known) + 1)))

    def _learn(self, drafts: Many[Draft], num_tokens: int) -> None:
        """Move what is expected of drafts towards what is expected of these; tokens that one lacks do not survive."""
        if not drafts:
            return
        found = np.zeros((len(drafts), num_tokens))
        for row, draft in zip(found, drafts, strict=True):
            survival = self._estimates.survival(draft)
            row[: len(survival)] = survival
        mean, known = found.mean(axis=0), self._survival[:num_tokens]
        moved = known + _WEIGHT * (mean[: len(known)] - known)
        self._survival = np.concatenate((moved, mean[len(known) :], self._survival[num_tokens:]))
