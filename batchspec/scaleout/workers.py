"""What a fleet asks of the place where workers live."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from batchspec.scaleout.worker import Facts, Given, Reply

__all__ = ["Event", "Lost", "Workers"]


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A worker that answers no more, and why."""

    reason: str


Event = Facts | Reply | Lost


class Workers(Protocol):
    """Starts workers and carries messages; a worker's replies come in the order in which it was sent to."""

    def start(self) -> int:
        """Begin to start a worker and return its number; its ``Facts`` or its loss come later."""

    def send(self, number: int, given: Sequence[Given]) -> None:
        """Send lines to a worker, maybe none; a ``Reply`` comes later, or the worker's loss, once."""

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        """Return what workers have told, by their numbers; empty if nothing came in that time.

        Raises:
            UsageError: a worker cannot do what it is asked for, and no other could.
        """

    def close(self) -> None:
        """End all workers."""
