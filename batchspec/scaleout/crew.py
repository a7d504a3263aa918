"""The workers of a fleet: who is ready, who has what open, and what becomes of it when one is lost."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from batchspec.errors import UsageError
from batchspec.reconcile import AcceptanceSums
from batchspec.scaleout.member import Growth, Member
from batchspec.scaleout.worker import Facts, Given, Reply
from batchspec.scaleout.workers import Lost, Workers

__all__ = ["Crew"]

_SECONDS_OF_A_WAIT = 0.2
_SECONDS_TO_GATHER = 15.0
_WORKER_LOST = "worker lost"


class Crew:
    """Hands lines out and takes replies in; lines of a lost worker go to others, and another is started in its place.

    Args:
        workers: where they live.
        num_workers: how many there should be.
        max_num_seqs: sequences that each runs at once.
        say: told, in sentences, what becomes of them.
    """

    def __init__(self, workers: Workers, *, num_workers: int, max_num_seqs: int, say: Callable[[str], None]):
        self.num_workers = num_workers
        self._workers = workers
        self._max_num_seqs = max_num_seqs
        self._say = say
        self._members = {workers.start(): Member() for _ in range(num_workers)}
        self._first: Facts | None = None
        self._again: deque[Given] = deque()
        self._unreported: dict[str, AcceptanceSums] = {}
        self._num_losses = 0

    @property
    def num_open(self) -> int:
        """Lines that were handed out or are to be handed out again."""
        return len(self._again) + self.num_running

    @property
    def num_running(self) -> int:
        """Lines that workers have."""
        return sum(len(member.open) for member in self._members.values())

    @property
    def has_ready(self) -> bool:
        """Whether there is a worker that can be handed lines."""
        return any(member.is_ready for member in self._members.values())

    def gather(self) -> Facts:
        """Wait for the workers, or for some of them and a little longer; return what the first one tells.

        Raises:
            UsageError: they cannot load the model, were lost too often, or are not alike.
        """
        started = time.monotonic()
        until, warn_at = math.inf, started + _SECONDS_TO_GATHER
        while self._first is None or (time.monotonic() < until and not self._are_all_ready()):
            for _ in self.receive(_SECONDS_OF_A_WAIT):
                pass
            if self._first is not None:
                until = min(until, time.monotonic() + _SECONDS_TO_GATHER)
            elif time.monotonic() > warn_at:
                self._say("no worker is ready yet: it waits for room in the cluster or loads the model")
                warn_at = math.inf
        return self._first

    def hand_out(self, lines: Callable[[int], list[Given]]) -> None:
        """Give lines to whoever has the fewest, a few neighbours at a time, until all have a batch and one waiting.

        Args:
            lines: returns at most so many new lines, none when there are none now.
        """
        ready = {number: member for number, member in self._members.items() if member.is_ready}
        portions: dict[int, list[Given]] = {number: [] for number in ready}
        room = {
            number: 2 * self._max_num_seqs - len(member.open) for number, member in ready.items() if member.has_turn
        }
        while room:
            number = max(room, key=lambda number: room[number])
            most = min(room[number], max(1, self._max_num_seqs // 4))
            portion = self._take_again(most) or (lines(most) if most > 0 else [])
            if not portion:
                break
            portions[number] += portion
            room[number] -= len(portion)
        for number, member in ready.items():
            if portions[number]:
                self._send(number, portions[number])
            while member.open and member.has_turn:  # so that it goes on while its reply is on the way
                self._send(number, [])

    def receive(self, seconds: float) -> Iterator[tuple[int, Reply, Growth]]:
        """Wait for what workers have to tell; yield their replies, and what their counts have grown by.

        Raises:
            UsageError: workers were lost again and again, or one cannot serve as the others do.
        """
        for number, event in self._workers.wait(seconds):
            if isinstance(event, Facts):
                self._welcome(number, event)
            elif isinstance(event, Lost):
                self._lose(number, event)
            else:
                growth = self._members[number].take(event)
                if event.records:
                    self._num_losses = 0
                yield number, event, growth

    def unreported(self) -> dict[str, AcceptanceSums]:
        """Return what workers have counted for requests whose records carry no metrics, by cause."""
        found = dict(self._unreported)
        for member in self._members.values():
            _add(found, member.unreported())
        return found

    def in_flight(self) -> AcceptanceSums:
        """Return what workers have counted for requests without a record."""
        return sum((member.in_flight() for member in self._members.values()), AcceptanceSums())

    def close(self) -> None:
        """End all workers."""
        self._workers.close()

    def _are_all_ready(self) -> bool:
        return all(member.is_ready for member in self._members.values())

    def _take_again(self, most: int) -> list[Given]:
        return [self._again.popleft() for _ in range(min(most, len(self._again)))]

    def _send(self, number: int, portion: list[Given]) -> None:
        self._members[number].give(portion)
        self._workers.send(number, portion)

    def _welcome(self, number: int, facts: Facts) -> None:
        first = self._first = self._first or facts
        _check_alike(number, facts, first, "resolved", facts.resolved, first.resolved)
        _check_alike(number, facts, first, "has", facts.versions, first.versions)
        self._members[number].is_ready = True
        self._say(f"worker {number} is ready: process {facts.process[0]} on {facts.process[1]}")

    def _lose(self, number: int, lost: Lost) -> None:
        """Let others serve what a worker had open, name what it had counted for that, and start another."""
        member = self._members.pop(number)
        self._again = deque(sorted([*self._again, *member.open.values()], key=lambda given: given.line.index))
        _add(self._unreported, member.unreported())
        _add(self._unreported, {_WORKER_LOST: member.in_flight()})
        what = f"{len(member.open)} requests are served again" if member.open else "it had nothing to serve"
        self._say(f"worker {number} was lost ({lost.reason}): {what}")
        self._num_losses += 1
        if self._num_losses > 2 * self.num_workers + 1:
            raise UsageError(
                f"{self._num_losses} workers were lost one after the other without a record ({lost.reason}): see that "
                "they have enough memory, then run the same command again to go on"
            )
        self._members[self._workers.start()] = Member()


def _check_alike(
    number: int, facts: Facts, first: Facts, verb: str, told: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """Raise UsageError if a worker would not serve as the first one does."""
    for name, value in expected.items():
        if told.get(name) != value:
            raise UsageError(
                f"worker {number} on {facts.process[1]} {verb} {name} {told.get(name)!r}, the first one on "
                f"{first.process[1]} {value!r}: let all run the same software on the same devices"
            )


def _add(sums: dict[str, AcceptanceSums], more: Mapping[str, AcceptanceSums]) -> None:
    """Add up by cause, leaving out causes for which nothing was counted."""
    for cause, each in more.items():
        if any(each.counts().values()):
            sums[cause] = sums.get(cause, AcceptanceSums()) + each
