"""What a run tells whoever watches it."""

from typing import Protocol

from batchspec.api import Progress
from batchspec.files import InputSource

__all__ = ["Silent", "Watcher"]


class Watcher(Protocol):
    """Shows a run's progress; the job calls it, and it reads the counts at its own pace."""

    def say(self, text: str) -> None:
        """Show one sentence."""

    def begin(self, progress: Progress, source: InputSource, *, num_done: int, num_shards: int = 1) -> None:
        """Start to show progress of a run that serves one of so many shards.

        ``num_done`` rows were finished by an earlier, interrupted run.
        """

    def end(self) -> None:
        """Stop showing progress."""


class Silent:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Ignore the sentence."""

    def begin(self, progress: Progress, source: InputSource, *, num_done: int, num_shards: int = 1) -> None:
        """Ignore the progress."""

    def end(self) -> None:
        """Nothing to stop."""
