"""The rounds over a job's outputs: all n-grams in one, every other setting in one of its own."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.means import EarlierAnswers, Means
from batchspec.replay.costs import CostTable
from batchspec.replay.growing import Growing
from batchspec.replay.logs import Machine
from batchspec.replay.passes import DrafterPass, LookupPass, Pass, PlainPass
from batchspec.replay.schedule import Schedule
from batchspec.replay.tallies import Tallies

__all__ = ["Rounds"]


class Rounds:
    """What the settings add up to, over all jobs.

    Args:
        configs: the settings.
        costs: of a step; None to predict no times.
        answers: returns the earlier answers, for recall.
    """

    def __init__(
        self, configs: Sequence[SpeculativeConfig], costs: CostTable | None, *, answers: Callable[[], EarlierAnswers]
    ):
        self.tallies = Tallies([config.num_speculative_tokens for config in configs])
        self._configs = configs
        self._costs = costs
        self._answers = answers
        self._seconds = [Growing(dtype=np.float64) for _ in range(len(configs) + 1)]  # without drafts at the end

    @property
    def seconds(self) -> NDArray[np.float64] | None:
        """Predicted times by request, (requests, settings + 1), without drafts in the last column; None for none."""
        return None if self._costs is None else np.stack([each.array for each in self._seconds], axis=1)

    def of(self, machine: Machine) -> list[Callable[[], list[Pass]]]:
        """Return what makes the passes of each round over a job, a drafter's memory only when it is its turn."""
        rounds: list[Callable[[], list[Pass]]] = []
        for method, group in groupby(enumerate(self._configs), key=lambda member: member[1].method):
            members = list(group)
            if method == "ngram":
                rounds.append(partial(self._lookup_passes, members, machine))
            else:
                rounds += [partial(self._drafter_passes, *member, machine) for member in members]
        first = rounds[0]
        plain = self._schedules([len(self._configs)], machine)
        return [lambda: [*map(PlainPass, plain), *first()], *rounds[1:]]

    def _lookup_passes(self, members: Sequence[tuple[int, SpeculativeConfig]], machine: Machine) -> list[Pass]:
        places = [place for place, _ in members]
        return [
            LookupPass(
                [config for _, config in members],
                first=places[0],
                tallies=self.tallies,
                schedules=self._schedules(places, machine),
                max_model_len=machine.max_model_len,
            )
        ]

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
