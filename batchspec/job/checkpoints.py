"""When a run makes durable what it has done, and in which order."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from batchspec.errors import UsageError
from batchspec.files import InputSource, Journal, ResponseParts, read_so_far
from batchspec.job.account import RunAccount
from batchspec.job.memory import OutputsMemory

__all__ = ["Checkpoints"]

SECONDS_BETWEEN = 1.0


@dataclass(kw_only=True)
class Checkpoints:
    """Writes checkpoints; what was done behind the last one is done again after a crash.

    Attributes:
        journal: of the records.
        memory: of the outputs that drafts are made from, which must be on disk before records that depend on them.
        account: of the counts that belong to the records.
        source: the input, of which is noted what was read.
        parts: readable copies of the records so far; None where nobody asked for any, or where one failed.
        say: tells the user a sentence.
        started: reading of the monotonic clock, in seconds.
    """

    journal: Journal
    memory: OutputsMemory
    account: RunAccount
    source: InputSource
    parts: ResponseParts | None
    say: Callable[[str], None]
    started: float
    elapsed_seconds: float = 0.0
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self.write()

    def write_if_due(self) -> None:
        """Write a checkpoint if the last one is a second old; to be called between two steps of the engine."""
        if time.monotonic() - self._last >= SECONDS_BETWEEN:
            self.write()

    def write(self) -> None:
        """Write a checkpoint.

        Raises:
            UsageError: a file cannot be written.
        """
        self.elapsed_seconds = time.monotonic() - self.started
        self.memory.sync()
        state = self.account.state(elapsed_seconds=self.elapsed_seconds)
        self.journal.checkpoint(state | {"input": read_so_far(self.source)})
        self._extend_parts()
        self._last = time.monotonic()

    def _extend_parts(self) -> None:
        """Add to the parts; the run goes on without them, since the records are safe."""
        if self.parts is None:
            return
        try:
            self.parts.extend(self.journal.num_safe_bytes)
        except UsageError as error:
            self.parts = None
            self.say(f"{error}; no further parts are written, the records are in {self.journal.path}")
