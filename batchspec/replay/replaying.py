"""Replay: logs in, one document out."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from batchspec.errors import UsageError
from batchspec.files import RecordedAnswers
from batchspec.replay.agreement import Chooser
from batchspec.replay.census import Census
from batchspec.replay.document import replay_document
from batchspec.replay.logs import Log, open_logs
from batchspec.replay.passes import Pass
from batchspec.replay.ratios import Sums
from batchspec.replay.reading import Reader
from batchspec.replay.recorded import Recorded
from batchspec.replay.retokenise import Retokeniser, read_prompts
from batchspec.replay.rounds import Rounds
from batchspec.replay.settings import ReplaySettings
from batchspec.replay.spool import Spool

__all__ = ["replay_logs"]


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
    jobs = [{"path": log.path, **vars(log.machine), "has_indices": replay.take(log)} for log in logs]
    census, rounds = replay.census, replay.rounds
    if not census.num_requests:
        reasons = census.left_out_in_words() or "there is none"
        raise UsageError(f"{' and '.join(settings.paths)}: no row can be replayed ({reasons})")
    return replay_document(
        settings,
        census=census,
        sums=Sums(counts=rounds.tallies.counts, num_later_tokens=census.num_later_tokens, seconds=rounds.seconds),
        histograms=rounds.tallies.histograms,
        jobs=jobs,
    )


class _Replay:
    """What was read and what it adds up to."""

    def __init__(self, settings: ReplaySettings):
        self.settings = settings
        self.census = Census()
        self.rounds = Rounds(
            settings.configs, settings.costs, answers=lambda: self._answers, chooser=lambda: self._chooser
        )
        self._methods = {config.method for config in settings.configs}
        self._reader = Reader(self._retokeniser, keeps_sampling="draft_model" in self._methods)

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
        return RecordedAnswers(path, encode=self._encode)

    def _encode(self, text: str) -> list[int]:
        if self._retokeniser is None:
            raise UsageError("--recall-path holds answers without token ids: give --tokenizer, or make them with ids.")
        return self._retokeniser.encode_plain(text)

    @cached_property
    def _chooser(self) -> Chooser:
        """The draft model; all settings have the same."""
        (model,) = {config.model for config in self.settings.configs if config.method == "draft_model"}
        if self.settings.open_draft_model is None:
            raise UsageError("a draft model cannot be had here.")
        return self.settings.open_draft_model(model)

    def take(self, log: Log) -> bool | None:
        """Replay a job; return whether its log tells every request's index, None where that does not matter."""
        recorded = self.census.pass_on(self._reader.read(log.source.rows()), path=log.path)
        rounds = self.rounds.of(log.machine)
        if self._methods <= {"ngram", "draft_model"}:
            _run(rounds[0](), recorded)
            return None
        with Spool() as spool:
            spool.add(recorded)
            for make in rounds:
                _run(make(), spool.read())
            return spool.has_indices if "suffix" in self._methods else None


def _run(passes: Sequence[Pass], recorded: Iterable[Recorded]) -> None:
    for one in recorded:
        for each in passes:
            each.take(one)
    for each in passes:
        each.finish()
