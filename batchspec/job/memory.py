"""What a drafter has learnt from a run's outputs, kept over interruptions."""

from collections.abc import Container
from types import TracebackType

import numpy as np

from batchspec.drafting.generations import Output
from batchspec.files import OutputsLog, RunState, RunStatus
from batchspec.job.serving import Serving

__all__ = ["OutputsMemory"]


class OutputsMemory:
    """Writes outputs down as they end, and tells the drafter those of earlier parts of the run; a context manager.

    Nothing is written for drafters that do not learn from outputs.

    Args:
        engine: with the drafter.
        state: the run directory.
        finished: indices of the requests that have a record; others are computed again, and learnt again.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, engine: Serving, state: RunState, *, finished: Container[int]):
        self._generations = engine.generations
        self._log: OutputsLog | None = None
        if self._generations is None:
            return
        self._log = OutputsLog(state.path("outputs.jsonl"), is_fresh=state.status is RunStatus.FRESH)
        for index, sample_index, tokens in self._log.read(finished):
            self._generations.remember(index, sample_index, np.array(tokens, dtype=np.int64))
        self._generations.on_output = self._append

    def sync(self) -> None:
        """Make durable what was learnt, before the records that go with it are."""
        if self._log is not None:
            self._log.sync()

    def __enter__(self) -> "OutputsMemory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._generations is not None:
            self._generations.on_output = None
        if self._log is not None:
            self._log.__exit__(kind, error, trace)

    def _append(self, index: int, sample_index: int, output: Output) -> None:
        if self._log is not None:
            self._log.append(index, sample_index, output.tolist())
