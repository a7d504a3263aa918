"""Workers in the test's own process, which can be lost at any reply, and jobs that are served by them."""

import itertools
import random
from collections import deque
from collections.abc import Callable, Sequence

from batchspec.job.opening import open_job
from batchspec.job.outcome import JobOutcome
from batchspec.job.run import engine_for, load_for, serve_with
from batchspec.job.settings import JobSettings
from batchspec.job.watch import Silent
from batchspec.scaleout.crew import Crew
from batchspec.scaleout.fleet import Fleet
from batchspec.scaleout.worker import Facts, Given, Reply, Worker
from batchspec.scaleout.workers import Event, Lost

__all__ = ["LocalWorkers", "serve_with_fleet"]

IsLost = Callable[[int, int, int], bool]


class LocalWorkers:
    """Real engines; of the messages on the way, chance decides which comes first.

    A second passes whenever a worker looks at its clock, so that a reply has one record, however fast the machine is,
    and a worker is in the middle of more.

    Args:
        settings: of the job.
        is_lost: asked before every reply, with the worker's number, how many it has sent and how many speculative steps
            the last one told of that no record tells, whether the worker is lost instead.
        seed: of the order of messages.
    """

    def __init__(self, settings: JobSettings, *, is_lost: IsLost = lambda *_: False, seed: int = 0):
        self.settings = settings
        self.is_lost = is_lost
        self.random = random.Random(seed)
        self.workers: dict[int, Worker] = {}
        self.calls: dict[int, deque[Sequence[Given] | None]] = {}
        self.num_replies: dict[int, int] = {}
        self.num_in_flight: dict[int, int] = {}
        self.num_started = 0
        self.is_closed = False

    def start(self) -> int:
        self.num_started += 1
        number = self.num_started
        seconds = itertools.count()
        engine = engine_for(self.settings, load_for(self.settings))
        self.workers[number] = Worker(engine, clock=lambda: float(next(seconds)))
        self.calls[number], self.num_replies[number], self.num_in_flight[number] = deque([None]), 0, 0
        return number

    def send(self, number: int, given: Sequence[Given]) -> None:
        self.calls[number].append(given)

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        waiting = [number for number, calls in self.calls.items() if calls]
        if not waiting:
            return []
        number = self.random.choice(waiting)
        if self.is_lost(number, self.num_replies[number], self.num_in_flight[number]):
            del self.calls[number], self.workers[number]
            return [(number, Lost(reason="the test says so"))]
        given = self.calls[number].popleft()
        self.num_replies[number] += 1
        if given is None:
            return [(number, self.facts(number))]
        reply = self.reply(number, given)
        self.num_in_flight[number] = reply.account["in_flight"]["num_spec_steps"]
        return [(number, reply)]

    def facts(self, number: int) -> Facts:
        return self.workers[number].facts()

    def reply(self, number: int, given: Sequence[Given]) -> Reply:
        return self.workers[number].exchange(given)

    def close(self) -> None:
        self.is_closed = True


def serve_with_fleet(
    settings: JobSettings,
    make: Callable[[JobSettings], LocalWorkers],
    *,
    num_workers: int = 2,
    said: list[str] | None = None,
) -> JobOutcome:
    """Serve a job with workers that ``make`` returns."""
    opened = open_job(settings)
    if isinstance(opened, JobOutcome):
        return opened
    said = [] if said is None else said
    workers = make(settings)
    max_num_seqs = settings.engine.max_num_seqs
    crew = Crew(workers, num_workers=num_workers, max_num_seqs=max_num_seqs, say=said.append)
    with Fleet(crew) as fleet:
        outcome = serve_with(fleet, opened, watcher=Silent())
    assert workers.is_closed
    return outcome
