"""The best of several drafters, for every sequence and step anew."""

from collections.abc import Sequence as Many

from batchspec.drafting.estimates import AcceptanceEstimates
from batchspec.drafting.generations import Generations
from batchspec.drafting.interface import Drafter
from batchspec.drafting.thrift import Thrift
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome

__all__ = ["AutoDrafter"]

_ENOUGH = 1.0  # expected tokens of a free draft for which the draft model is not asked


class AutoDrafter:
    """Asks all drafters and takes, for each sequence, the draft of which most tokens are expected to be accepted.

    Args:
        drafters: that cost next to nothing; of drafts as good, that of the first is taken.
        last: a draft model, asked only for sequences for which the others have too little; None for none.
        thrift: asks ``last`` for as much as pays; None for all that there is.
        estimates: of acceptance, by what became of earlier drafts.
        learns: whether to note what became of them; False where whoever cuts the drafts does.
    """

    def __init__(
        self,
        drafters: Many[Drafter],
        *,
        last: Drafter | None,
        estimates: AcceptanceEstimates,
        thrift: Thrift | None = None,
        learns: bool = True,
    ):
        self.drafters = drafters
        self.last = last
        self.thrift = thrift
        self.estimates = estimates
        self.learns = learns
        self._chosen: dict[int, Draft] = {}

    @property
    def num_spec_tokens(self) -> int:
        """The most tokens in one draft (k)."""
        return max(drafter.num_spec_tokens for drafter in self._all)

    @property
    def _all(self) -> list[Drafter]:
        return [*self.drafters, *([] if self.last is None else [self.last])]

    @property
    def generations(self) -> Generations | None:
        """Those of the drafter that has some."""
        return next((drafter.generations for drafter in self._all if drafter.generations is not None), None)

    def begin(self, sequence: Sequence) -> None:
        """Tell everyone."""
        for drafter in self._all:
            drafter.begin(sequence)

    def is_ready(self, sequence: Sequence) -> bool:
        """Whether everyone is."""
        return all(drafter.is_ready(sequence) for drafter in self._all)

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        """Return the best draft for each sequence."""
        best: dict[int, tuple[float, Draft]] = {}
        for drafter in self.drafters:
            self._compare(best, drafter.propose(decoding))
        if self.last is not None:
            poor = [one for one in decoding if id(one) not in best or best[id(one)][0] < _ENOUGH]
            if poor and self.thrift is not None:
                self._compare(best, self.thrift.ask(poor, num_decoding=len(decoding)))
            elif poor:
                self._compare(best, self.last.propose(poor))
        self._chosen = {key: draft for key, (_, draft) in best.items()}
        return [self._chosen[id(sequence)] for sequence in decoding if id(sequence) in self._chosen]

    def observe(self, outcomes: Many[Outcome], *, num_rows: int) -> None:
        """Learn what became of the drafts."""
        for drafter in self._all:
            drafter.observe(outcomes, num_rows=num_rows)
        for outcome in outcomes if self.learns else ():
            draft = self._chosen.get(id(outcome.sequence))
            if draft is not None and outcome.num_drafted:
                self.estimates.observe(draft, num_tried=outcome.num_drafted, num_accepted=outcome.num_accepted)

    def end(self, sequence: Sequence) -> None:
        """Tell everyone."""
        for drafter in self._all:
            drafter.end(sequence)

    def _compare(self, best: dict[int, tuple[float, Draft]], drafts: Many[Draft]) -> None:
        """Let drafts take the place of worse ones."""
        for draft in drafts:
            expected = float(self.estimates.survival(draft).sum())
            if id(draft.sequence) not in best or expected > best[id(draft.sequence)][0]:
                best[id(draft.sequence)] = expected, draft
