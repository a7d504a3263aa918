"""Many engines as one: lines are handed out, records come back in order, and the accounts add up whatever is lost."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from batchspec.api import Progress
from batchspec.files import RowDefaults
from batchspec.ordering import Lane
from batchspec.reconcile import AcceptanceSums, Reconciliation, reconcile
from batchspec.records import error_record
from batchspec.report.bodies import body_facts
from batchspec.request import Intake, Request, Where, naming
from batchspec.scaleout.crew import Crew
from batchspec.scaleout.member import Growth
from batchspec.scaleout.merged_counters import MergedCounters
from batchspec.scaleout.worker import Given, Reply
from batchspec.source_counters import SourceCounters

__all__ = ["Fleet"]

_MOST_HELD = 4096  # records that may wait for an earlier one before no new line is handed out
_SECONDS_OF_A_WAIT = 0.2


class Fleet:
    """Serves requests with workers, as ``batchspec.Engine`` does with one model; a context manager.

    What a worker was serving when it was lost is served again by others. What it had counted for that, as far as it has
    told, stays in the counters and is unreported as ``worker lost``.

    Args:
        crew: the workers.

    Raises:
        UsageError: they cannot load the model, or cannot be started.
    """

    def __init__(self, crew: Crew):
        self._crew = crew
        try:
            self._facts = crew.gather()
        except BaseException:
            crew.close()
            raise
        self._lane = Lane(in_order=True, most_held=_MOST_HELD)
        self._is_stopping = self._is_stopped = False
        self._progress = Progress()
        self._counters = MergedCounters(model_name=self._facts.model_name, num_spec_tokens=self._facts.num_spec_tokens)
        self._sources = SourceCounters(labels=self._counters.labels, registry=self._counters.registry)

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        self._crew.close()

    def run(
        self,
        requests: Iterable[Intake],
        *,
        in_order: bool = True,
        where: Where = "request",
        between_steps: Callable[[], None] = lambda: None,
    ) -> Generator[dict[str, Any], None, None]:
        """Serve requests and yield a record for each; as ``Engine.run``.

        Raises:
            UsageError: workers were lost again and again, or one cannot serve as the others do.
        """
        self._lane = Lane(in_order=in_order, most_held=_MOST_HELD)
        source, named, crew = iter(requests), naming(where), self._crew
        while not self._is_stopping and (not self._progress.is_exhausted or crew.num_open):
            crew.hand_out(lambda most: self._next_lines(source, named, most=most))
            self._counters.num_running.set(crew.num_running)
            yield from self._lane.ready()
            if crew.num_open or not crew.has_ready:
                for number, reply, growth in crew.receive(_SECONDS_OF_A_WAIT):
                    self._take(number, reply, growth)
                self._counters.num_running.set(crew.num_running)
                yield from self._lane.ready()
            between_steps()
        self._is_stopped, self._is_stopping = self._is_stopping, False

    def stop(self) -> None:
        """End the run soon; may be called from a signal handler or another thread."""
        self._is_stopping = True

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` ended the last run."""
        return self._is_stopped

    @property
    def progress(self) -> Progress:
        """Counts that grow: of lines as they come in and go out, of tokens as workers tell."""
        return self._progress

    @property
    def counters(self) -> MergedCounters:
        """The sum of the workers' counters."""
        return self._counters

    @property
    def sources(self) -> SourceCounters:
        """The sum of their draft tokens by source."""
        return self._sources

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
        return {**self._facts.dimensions, "num_workers": self._crew.num_workers}

    def unreported(self) -> dict[str, AcceptanceSums]:
        """Return what was counted for requests whose records carry no metrics, by cause."""
        return self._crew.unreported()

    def in_flight(self) -> AcceptanceSums:
        """Return what was counted for requests whose records have not left: still served, or waiting for others."""
        held = (body_facts(record["response"]["body"]).speculative_decoding for record in self._lane.held())
        return sum((AcceptanceSums.from_document(each) for each in held if each is not None), self._crew.in_flight())

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
        totals = AcceptanceSums.from_totals(self._counters.totals())
        return reconcile(reported=reported, unreported=unreported, totals=totals)

    def _next_lines(self, source: Iterator[Intake], named: Callable[[int], str], *, most: int) -> list[Given]:
        """Return new lines to serve; those that cannot be served are done at once."""
        lines: list[Given] = []
        while len(lines) < most and not self._progress.is_exhausted and not self._lane.is_full:
            line = next(source, None)
            if line is None:
                self._progress.is_exhausted = True
                break
            self._progress.num_requests += 1
            self._lane.open(line.index)
            if isinstance(line, Request):
                lines.append(Given(line=line, where=named(line.line)))
            else:
                self._hand_in(line.index, error_record(line))
        return lines

    def _take(self, number: int, reply: Reply, growth: Growth) -> None:
        """Hand in a reply's records, and count on."""
        self._counters.restore(growth.counters)
        self._sources.restore(growth.sources)
        for name, more in growth.progress.items():
            setattr(self._progress, name, getattr(self._progress, name) + more)
        if reply.exposition:
            self._counters.show_histograms(str(number), reply.exposition)
        for index, record in reply.records.items():
            self._hand_in(index, record)

    def _hand_in(self, index: int, record: dict[str, Any]) -> None:
        self._progress.num_done += 1
        self._progress.num_failed += record["error"] is not None
        self._lane.close(index, record)
