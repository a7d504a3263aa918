"""Many engines as one: lines are handed out, records come back in order, and the accounts add up whatever is lost."""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from batchspec.api import Progress
from batchspec.errors import UsageError
from batchspec.files import RowDefaults, record_index
from batchspec.ordering import Lane
from batchspec.reconcile import AcceptanceSums, Reconciliation, reconcile
from batchspec.records import error_record
from batchspec.report.bodies import body_facts
from batchspec.request import Intake, Request, Where, naming
from batchspec.scaleout.accounts import MergedAccount
from batchspec.scaleout.member import Member
from batchspec.scaleout.merged_counters import MergedCounters
from batchspec.scaleout.worker import Facts, Given, Reply
from batchspec.scaleout.workers import Lost, Workers
from batchspec.source_counters import SourceCounters

__all__ = ["Fleet"]

_MOST_HELD = 4096  # records that may wait for an earlier one before no new line is handed out
_SECONDS_OF_A_WAIT = 0.2
_SECONDS_TO_GATHER = 15.0
_WORKER_LOST = "worker lost"


class Fleet:
    """Serves requests with workers, as ``batchspec.Engine`` does with one model; a context manager.

    What a worker was serving when it was lost is served again by others. What it had counted for that, as far as it has
    told, stays in the counters and is unreported as ``worker lost``.

    Args:
        workers: where they live.
        num_workers: how many there should be.
        max_num_seqs: sequences that each runs at once.
        say: told, in sentences, what becomes of them.

    Raises:
        UsageError: no worker can be started, or they cannot load the model.
    """

    def __init__(self, workers: Workers, *, num_workers: int, max_num_seqs: int, say: Callable[[str], None]):
        self._workers = workers
        self._num_workers = num_workers
        self._max_num_seqs = max_num_seqs
        self._say = say
        self._members: dict[int, Member] = {}
        self._again: deque[Given] = deque()
        self._lane = Lane(in_order=True, most_held=_MOST_HELD)
        self._is_stopping = self._is_stopped = False
        self._num_losses = 0
        self.progress = Progress()
        for _ in range(num_workers):
            self._members[workers.start()] = Member()
        try:
            self._facts = self._gather()
        except BaseException:
            workers.close()
            raise
        self._account = MergedAccount(model_name=self._facts.model_name, num_spec_tokens=self._facts.num_spec_tokens)

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.close()

    def run(
        self, requests: Iterable[Intake], *, in_order: bool = True, where: Where = "request"
    ) -> Generator[dict[str, Any], None, None]:
        """Serve requests and yield a record for each; as ``Engine.run``.

        Raises:
            UsageError: workers were lost again and again, or one cannot serve as the others do.
        """
        self._lane = Lane(in_order=in_order, most_held=_MOST_HELD)
        source, named = iter(requests), naming(where)
        while not self._is_stopping and (not self.progress.is_exhausted or self._num_open):
            self._hand_out(source, named)
            yield from self._lane.ready()
            if self._num_open or not any(member.is_ready for member in self._members.values()):
                self._receive(_SECONDS_OF_A_WAIT)
                yield from self._lane.ready()
        self._is_stopped, self._is_stopping = self._is_stopping, False

    def stop(self) -> None:
        """End the run soon; may be called from a signal handler or another thread."""
        self._is_stopping = True

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` ended the last run."""
        return self._is_stopped

    @property
    def counters(self) -> MergedCounters:
        """The sum of the workers' counters."""
        return self._account.counters

    @property
    def sources(self) -> SourceCounters:
        """The sum of their draft tokens by source."""
        return self._account.sources

    @property
    def generations(self) -> None:
        """What drafts learn from stays with the workers."""
        return None

    @property
    def defaults(self) -> RowDefaults:
        """What requests are sampled with where they do not say."""
        return self._facts.defaults

    @property
    def model_name(self) -> str:
        """The model's name in records and counters."""
        return self._facts.model_name

    @property
    def resolved(self) -> dict[str, Any]:
        """What ``auto`` came to, the same on all workers; what drafts learn from hangs on who served what."""
        learning = {"drafts_learn_from": "outputs of requests that the same worker has served before"}
        return {**self._facts.resolved, **(learning if "drafts_learn_from" in self._facts.resolved else {})}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what ``auto`` came to."""
        return self._facts.notes

    @property
    def dimensions(self) -> dict[str, int]:
        """What the settings came to on the first worker, and how many workers there are."""
        return {**self._facts.dimensions, "num_workers": self._num_workers}

    def unreported(self) -> dict[str, AcceptanceSums]:
        """Return what was counted for requests whose records carry no metrics, by cause."""
        found = dict(self._account.unreported)
        for member in self._members.values():
            for cause, sums in member.unreported().items():
                found[cause] = found.get(cause, AcceptanceSums()) + sums
        return found

    def in_flight(self) -> AcceptanceSums:
        """Return what was counted for requests whose records have not left: still served, or waiting for others."""
        held = (body_facts(record["response"]["body"]).speculative_decoding for record in self._lane.held())
        sums = sum((AcceptanceSums.from_document(each) for each in held if each is not None), AcceptanceSums())
        return sum((member.in_flight() for member in self._members.values()), sums)

    def reconcile(
        self, reported: AcceptanceSums, *, carried: Mapping[str, AcceptanceSums] | None = None
    ) -> Reconciliation | None:
        """Compare the records with the sum of the counters; None at level none."""
        if self._facts.level == "none":
            return None
        unreported = dict(carried or {})
        for cause, sums in {**self.unreported(), "in flight": self.in_flight()}.items():
            if any(sums.counts().values()):
                unreported[cause] = unreported.get(cause, AcceptanceSums()) + sums
        totals = AcceptanceSums.from_totals(self.counters.totals())
        return reconcile(reported=reported, unreported=unreported, totals=totals)

    @property
    def _num_open(self) -> int:
        return len(self._again) + sum(len(member.open) for member in self._members.values())

    def _gather(self) -> Facts:
        """Wait for the workers, or for some of them and a little longer; return what the first one tells."""
        facts: Facts | None = None
        until = 0.0
        warn_at = time.monotonic() + _SECONDS_TO_GATHER
        while facts is None or (time.monotonic() < until and not all(each.is_ready for each in self._members.values())):
            if facts is None and time.monotonic() > warn_at:
                self._say("no worker is ready yet: it waits for room in the cluster or loads the model")
                warn_at = math.inf
            for number, event in self._workers.wait(_SECONDS_OF_A_WAIT):
                if isinstance(event, Facts):
                    facts = facts or event
                    until = until or time.monotonic() + _SECONDS_TO_GATHER
                    self._welcome(number, event, first=facts)
                elif isinstance(event, Lost):
                    self._lose(number, event)
        return facts

    def _welcome(self, number: int, facts: Facts, *, first: Facts) -> None:
        for what, told, expected in (
            ("resolved", facts.resolved, first.resolved),
            ("has", facts.versions, first.versions),
        ):
            for name, value in expected.items():
                if told.get(name) != value:
                    raise UsageError(
                        f"worker {number} on {facts.process[1]} {what} {name} {told.get(name)!r}, the first one on "
                        f"{first.process[1]} {value!r}: let all run the same software on the same devices"
                    )
        self._members[number].is_ready = True
        self._say(f"worker {number} is ready: process {facts.process[0]} on {facts.process[1]}")

    def _hand_out(self, source: Iterator[Intake], named: Callable[[int], str]) -> None:
        """Give lines to whoever has the fewest, a few neighbours at a time, until all have a batch and one waiting."""
        ready = {number: member for number, member in self._members.items() if member.is_ready}
        portions: dict[int, list[Given]] = {number: [] for number in ready}
        free = {
            number: 2 * self._max_num_seqs - len(member.open) for number, member in ready.items() if member.has_turn
        }
        while free:
            number = max(free, key=lambda number: free[number])
            lines = self._next_lines(source, named, most=min(free[number], max(1, self._max_num_seqs // 4)))
            if not lines:
                break
            portions[number] += lines
            free[number] -= len(lines)
        for number, member in ready.items():
            member.give(portions[number])
            if portions[number]:
                member.num_calls += 1
                self._workers.send(number, portions[number])
            while member.open and member.has_turn:  # so that it goes on while its reply is on the way
                member.num_calls += 1
                self._workers.send(number, [])
        self.counters.num_running.set(sum(len(member.open) for member in self._members.values()))

    def _next_lines(self, source: Iterator[Intake], named: Callable[[int], str], *, most: int) -> list[Given]:
        """Return lines to serve, those of lost workers first; lines that cannot be served are done at once."""
        lines: list[Given] = []
        while len(lines) < most and self._again:
            lines.append(self._again.popleft())
        while len(lines) < most and not self.progress.is_exhausted and not self._lane.is_full:
            line = next(source, None)
            if line is None:
                self.progress.is_exhausted = True
                break
            self.progress.num_requests += 1
            self._lane.open(line.index)
            if isinstance(line, Request):
                lines.append(Given(line=line, where=named(line.line)))
            else:
                self._hand_in(line.index, error_record(line))
        return lines

    def _receive(self, seconds: float) -> None:
        """Wait for what workers have to tell."""
        for number, event in self._workers.wait(seconds):
            if isinstance(event, Facts):
                self._welcome(number, event, first=self._facts)
            elif isinstance(event, Reply):
                self._take(number, event)
            else:
                self._lose(number, event)

    def _take(self, number: int, reply: Reply) -> None:
        """Hand in a reply's records, and count on from what the worker had told before."""
        member = self._members[number]
        counters, sources, progress = member.take(reply)
        self.counters.restore(counters)
        self.sources.restore(sources)
        for name, grown in progress.items():
            setattr(self.progress, name, getattr(self.progress, name) + grown)
        if reply.exposition:
            self.counters.show_histograms(str(number), reply.exposition)
        for record in reply.records:
            index = record_index(record)
            assert index is not None
            del member.open[index]
            self._num_losses = 0
            self._hand_in(index, record)

    def _lose(self, number: int, lost: Lost) -> None:
        """Let others serve what a worker had open, name what it had counted for that, and start another in its place.

        Raises:
            UsageError: this has happened too often without a record in between.
        """
        member = self._members.pop(number)
        self._again = deque(sorted([*self._again, *member.open.values()], key=lambda given: given.line.index))
        if member.account is not None:
            for cause, sums in member.unreported().items():
                self._account.carry(cause, sums)
            self._account.carry(_WORKER_LOST, member.in_flight())
        self._num_losses += 1
        what = f"{len(member.open)} requests are served again" if member.open else "it had nothing to serve"
        self._say(f"worker {number} was lost ({lost.reason}): {what}")
        if self._num_losses > 2 * self._num_workers + 1:
            raise UsageError(
                f"{self._num_losses} workers were lost one after the other without a record ({lost.reason}): see that "
                "they have enough memory, then run the same command again to go on"
            )
        self._members[self._workers.start()] = Member()

    def _hand_in(self, index: int, record: dict[str, Any]) -> None:
        self.progress.num_done += 1
        self.progress.num_failed += record["error"] is not None
        self._lane.close(index, record)
