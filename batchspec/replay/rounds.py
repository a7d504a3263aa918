"""The rounds over a job's outputs: all that look at the text alone in one, every other setting in one of its own."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.means import EarlierAnswers, Means
from batchspec.replay.agreement import Chooser, find_agreement
from batchspec.replay.costs import CostTable
from batchspec.replay.growing import Growing
from batchspec.replay.logs import Machine
from batchspec.replay.passes import DrafterPass, LookupPass, Pass, PlainPass, ngrams_of
from batchspec.replay.schedule import Schedule
from batchspec.replay.tallies import Tallies

__all__ = ["Rounds"]

_TOGETHER = ("ngram", "draft_model")


class Rounds:
    """What the settings add up to, over all jobs.

    Args:
        configs: the settings.
        costs: of a step; None to predict no times.
        answers: returns the earlier answers, for recall.
        chooser: returns the draft model.
    """

    def __init__(
        self,
        configs: Sequence[SpeculativeConfig],
        costs: CostTable | None,
        *,
        answers: Callable[[], EarlierAnswers],
        chooser: Callable[[], Chooser],
    ):
        self.tallies = Tallies([config.num_speculative_tokens for config in configs])
        self._configs = configs
        self._costs = costs
        self._answers = answers
        self._chooser = chooser
        self._seconds = [Growing(dtype=np.float64) for _ in range(len(configs) + 1)]  # without drafts at the end

    @property
    def seconds(self) -> NDArray[np.float64] | None:
        """Predicted times by request, (requests, settings + 1), without drafts in the last column; None for none."""
        return None if self._costs is None else np.stack([each.array for each in self._seconds], axis=1)

    def of(self, machine: Machine) -> list[Callable[[], list[Pass]]]:
        """Return what makes the passes of each round over a job, a drafter's memory only when it is its turn."""
        members = {method: list(group) for method, group in groupby(enumerate(self._configs), key=_method_of)}
        together = [self._lookup_pass(members[method], machine) for method in members if method in _TOGETHER]
        plain = [PlainPass(schedule) for schedule in self._schedules([len(self._configs)], machine)]
        alone = [
            partial(self._drafter_passes, *member, machine)
            for method in members
            if method not in _TOGETHER
            for member in members[method]
        ]
        first: list[Pass] = [*plain, *together]
        return [lambda: first, *alone] if first else [*alone]

    def _lookup_pass(self, members: Sequence[tuple[int, SpeculativeConfig]], machine: Machine) -> Pass:
        places, configs = [place for place, _ in members], [config for _, config in members]
        ks = [config.num_speculative_tokens for config in configs]
        if configs[0].method == "ngram":
            find = partial(ngrams_of, config=configs[0], most=max(ks))
        else:
            find = partial(find_agreement, chooser=self._chooser(), most=max(ks))
        return LookupPass(
            find,
            ks=ks,
            first=places[0],
            tallies=self.tallies,
            schedules=self._schedules(places, machine),
            max_model_len=machine.max_model_len,
        )

    def _drafter_passes(self, place: int, config: SpeculativeConfig, machine: Machine) -> list[Pass]:
        means = Means(max_num_seqs=machine.max_num_seqs, answers=lambda _: self._answers())
        return [
            DrafterPass(
                make_drafter(config, means),
                setting=place,
                tallies=self.tallies,
                schedule=next(iter(self._schedules([place], machine)), None),
                max_model_len=machine.max_model_len,
            )
        ]

    def _schedules(self, places: Sequence[int], machine: Machine) -> list[Schedule]:
        """Return what predicts the times of these settings; nothing where times are not asked for."""
        costs = self._costs
        return [] if costs is None else [Schedule(costs, machine, seconds=self._seconds[place]) for place in places]


def _method_of(member: tuple[int, SpeculativeConfig]) -> str:
    return member[1].method
