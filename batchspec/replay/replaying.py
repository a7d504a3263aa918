"""Replay: logs in, one document out."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np

from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.means import Means
from batchspec.errors import UsageError
from batchspec.files import RecordedAnswers
from batchspec.replay.census import Census
from batchspec.replay.document import replay_document
from batchspec.replay.growing import Growing
from batchspec.replay.logs import Log, Machine, open_logs
from batchspec.replay.passes import DrafterPass, LookupPass, Pass, PlainPass
from batchspec.replay.ratios import Sums
from batchspec.replay.reading import Reader
from batchspec.replay.recorded import Recorded
from batchspec.replay.retokenise import Retokeniser, read_prompts
from batchspec.replay.schedule import Schedule
from batchspec.replay.settings import ReplaySettings
from batchspec.replay.spool import Spool
from batchspec.replay.tallies import Tallies

__all__ = ["replay_logs"]

_PLAIN = -1  # place of the job without drafts among the times


def replay_logs(settings: ReplaySettings) -> dict[str, Any]:
    """Return what every setting would have accepted; see ``replay_document`` for its shape.

    Memory grows with the number of requests times settings, not with that of tokens.

    Raises:
        UsageError: a setting cannot work, a file cannot be read, or no row can be replayed.
        DamagedInputError: a log is truncated or corrupt.
    """
    settings.check()
    logs = open_logs(settings.paths, settings.machine)
    replay = _Replay(settings)
    has_indices = [replay.take(log) for log in logs]
    replay.check_not_empty()
    return replay_document(
        settings,
        census=replay.census,
        sums=replay.sums,
        histograms=replay.tallies.histograms,
        jobs=[
            {"path": log.path, **vars(log.machine), "has_indices": known}
            for log, known in zip(logs, has_indices, strict=True)
        ],
    )


class _Replay:
    """The sums of all jobs, and how a job is added to them."""

    def __init__(self, settings: ReplaySettings):
        self.settings = settings
        self.census = Census()
        self.tallies = Tallies([config.num_speculative_tokens for config in settings.configs])
        self._seconds = [Growing(dtype=np.float64) for _ in (*settings.configs, _PLAIN)]
        self._reader = Reader(self._retokeniser)

    @cached_property
    def _retokeniser(self) -> Retokeniser | None:
        if self.settings.tokenizer is None:
            return None
        prompts = {} if self.settings.prompts is None else read_prompts(self.settings.prompts)
        return Retokeniser(self.settings.tokenizer, prompts=prompts)

    @cached_property
    def _answers(self) -> RecordedAnswers:
        """The earlier answers to recall; all settings recall the same."""
        (path,) = {config.path for config in self.settings.configs if config.path is not None}
        return RecordedAnswers(path or "", encode=self._encode)

    def _encode(self, text: str) -> list[int]:
        if self._retokeniser is None:
            raise UsageError("--recall-path holds answers without token ids: give --tokenizer, or make them with ids.")
        return self._retokeniser.encode_plain(text)

    @property
    def sums(self) -> Sums:
        """By request."""
        seconds = None
        if self.settings.costs is not None:
            seconds = np.stack([each.array for each in self._seconds], axis=1)
        return Sums(counts=self.tallies.counts, num_later_tokens=self.census.num_later_tokens, seconds=seconds)

    def take(self, log: Log) -> bool | None:
        """Replay a job; return whether its log tells every request's index, None where that does not matter."""
        recorded = self.census.pass_on(self._reader.read(log.source.rows()), path=log.path)
        rounds = self._rounds(log.machine)
        methods = {config.method for config in self.settings.configs}
        if methods == {"ngram"}:
            _run(rounds[0](), recorded)
            return None
        with Spool() as spool:
            spool.add(recorded)
            for make in rounds:
                _run(make(), spool.read())
            return spool.has_indices if "suffix" in methods else None

    def _rounds(self, machine: Machine) -> list[Callable[[], list[Pass]]]:
        """Return what makes the passes of each round over a job: all n-grams in the first, then a drafter in each."""
        rounds: list[Callable[[], list[Pass]]] = []
        for method, group in groupby(enumerate(self.settings.configs), key=lambda member: member[1].method):
            members = list(group)
            if method == "ngram":
                rounds.append(partial(self._lookup_passes, members, machine))
            else:
                rounds += [partial(self._drafter_passes, *member, machine) for member in members]
        if self.settings.costs is not None:
            first = rounds[0]
            rounds[0] = lambda: [PlainPass(schedule) for schedule in self._schedules([_PLAIN], machine)] + first()
        return rounds

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
        means = Means(max_num_seqs=machine.max_num_seqs, answers=lambda _: self._answers)
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
        costs = self.settings.costs
        return [] if costs is None else [Schedule(costs, machine, seconds=self._seconds[place]) for place in places]

    def check_not_empty(self) -> None:
        """Raise UsageError if no row could be replayed."""
        if self.census.num_requests:
            return
        named = " and ".join(self.settings.paths)
        raise UsageError(f"{named}: no row can be replayed ({self.census.left_out_in_words() or 'there is none'})")


def _run(passes: Sequence[Pass], recorded: Iterable[Recorded]) -> None:
    for one in recorded:
        for each in passes:
            each.take(one)
    for each in passes:
        each.finish()
