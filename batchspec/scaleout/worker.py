"""An engine that is handed requests now and then, and hands back what is done with its account of just then."""

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from batchspec.api import Engine
from batchspec.files import RowDefaults, record_index
from batchspec.job.account import RunAccount
from batchspec.job.run import package_versions
from batchspec.request import Intake, NotYet

__all__ = ["Facts", "Given", "Reply", "Worker"]

_SECONDS_OF_A_TURN = 0.05
_SECONDS_BETWEEN_EXPOSITIONS = 2.0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is to be known of an engine before it is handed anything; as the members of ``batchspec.Engine``.

    Attributes:
        process: its process id and the name of its machine.
    """

    process: tuple[int, str]
    model_name: str
    num_spec_tokens: int
    level: str
    defaults: RowDefaults
    resolved: Mapping[str, Any]
    notes: tuple[str, ...]
    dimensions: Mapping[str, int]
    versions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Given:
    """A line that is handed out, and how messages name it."""

    line: Intake
    where: str


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What was done, and what was counted by then: together a cut through the engine's time that loses nothing.

    Attributes:
        records: by index, done since the last reply.
        account: as in a checkpoint; without these records and all before, just what no record tells is unreported or
            in flight.
        progress: the engine's counts.
        exposition: all series of the engine, now and then; "" otherwise.
    """

    records: Mapping[int, dict[str, Any]]
    account: Mapping[str, Any]
    progress: Mapping[str, int]
    exposition: str


class Worker:
    """Serves what it is handed, several hands at once: the batch stays full from one to the next.

    Args:
        engine: used for nothing else.
        clock: monotonic, in seconds.
    """

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.monotonic):
        self._engine = engine
        self._clock = clock
        self._account = RunAccount(engine)
        self._inbox: deque[Intake] = deque()
        self._names: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._exposed = clock()
        self._work = engine.run(self._intake(), in_order=False, where=lambda number: self._names[number])

    def facts(self) -> Facts:
        """Return what is to be known of the engine."""
        engine = self._engine
        return Facts(
            process=(os.getpid(), socket.gethostname()),
            model_name=engine.model_name,
            num_spec_tokens=engine.counters.num_spec_tokens,
            level=str(engine.level),
            defaults=engine.defaults,
            resolved=engine.resolved,
            notes=engine.notes,
            dimensions=engine.dimensions,
            versions=package_versions(),
        )

    def exchange(self, given: Sequence[Given]) -> Reply:
        """Take lines in, serve until something is done, and return it; at once if there is nothing to serve."""
        for each in given:
            self._inbox.append(each.line)
            self._numbers[each.line.index] = each.line.line
            self._names[each.line.line] = each.where
        until = self._clock() + _SECONDS_OF_A_TURN
        records: dict[int, dict[str, Any]] = {}
        while self._numbers and (not records or self._clock() < until):
            record = next(self._work)
            index = record_index(record) or 0
            records[index] = record
            del self._names[self._numbers.pop(index)]
        return Reply(
            records=records,
            account=self._account.state(elapsed_seconds=0.0),
            progress={name: int(value) for name, value in asdict(self._engine.progress).items()},
            exposition=self._exposition(),
        )

    def _intake(self) -> Iterator[Intake | NotYet]:
        while True:
            yield self._inbox.popleft() if self._inbox else NotYet()

    def _exposition(self) -> str:
        """Return the series if nothing is left to do, or some time has passed since they were last returned."""
        now = self._clock()
        if self._numbers and now - self._exposed < _SECONDS_BETWEEN_EXPOSITIONS:
            return ""
        self._exposed = now
        return self._engine.counters.exposition()
