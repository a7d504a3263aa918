"""The runs of a sweep, one after another in one process, with one model in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from batchspec.api import Model
from batchspec.errors import BatchspecError
from batchspec.files import RunStatus
from batchspec.job.opening import OpenedJob, check_resolved
from batchspec.job.outcome import ExitStatus, JobOutcome
from batchspec.job.run import load_for, package_versions, serve_job
from batchspec.job.watch import Watcher
from batchspec.sweep.opening import OpenedSweep
from batchspec.sweep.warming import warm_up

__all__ = ["PointResult", "run_points"]


@dataclass(frozen=True, kw_only=True)
class PointResult:
    """What became of a point.

    Attributes:
        outcome: of its run; None if it could not run.
        failure: why it could not.
    """

    outcome: JobOutcome | None = None
    failure: str | None = None

    @property
    def report(self) -> Mapping[str, Any] | None:
        """The document of the run's ``report.json``; None if there is none."""
        return None if self.outcome is None else self.outcome.report


def run_points(opened: OpenedSweep, *, watch: Callable[[], Watcher]) -> list[PointResult]:
    """Run the points that have not been run, and return what became of each, fewer if they were interrupted.

    A point that cannot run does not end the sweep. Nothing is written if all have been run.

    Args:
        opened: what to run.
        watch: returns somebody who watches a single run.

    Raises:
        UsageError: the sweep cannot go on, or its directory can no longer be written.
    """
    return _Running(opened=opened, watch=watch).run()


@dataclass(kw_only=True)
class _Running:
    opened: OpenedSweep
    watch: Callable[[], Watcher]
    results: list[PointResult] = field(default_factory=list)

    def run(self) -> list[PointResult]:
        outcomes = self.opened.finished()
        if len(outcomes) == len(self.opened.settings.points):
            return [PointResult(outcome=outcome) for outcome in outcomes]
        with self.opened.state as state:
            model = self._begin()
            state.save(status=self._run_all(model))
        return self.results

    def _begin(self) -> Model:
        opened, job = self.opened, self.opened.settings.job
        model = load_for(job)
        check_resolved(opened.state, model.resolved)
        opened.begin(versions=package_versions(), resolved=model.resolved)
        self.watch().say("warming up")
        warm_up(model, opened.settings)
        return model

    def _run_all(self, model: Model) -> str:
        """Run the points until they are done or one is interrupted; return the sweep's status."""
        points = self.opened.settings.points
        for number, point in enumerate(points, start=1):
            watcher = self.watch()
            watcher.say(f"point {number} of {len(points)}: {point.name}")
            result = self._run(number - 1, model, watcher)
            if result.outcome is not None and result.outcome.status is ExitStatus.INTERRUPTED:
                return "interrupted"
            self.results.append(result)
        return "interrupted" if any(result.failure for result in self.results) else "finished"

    def _run(self, index: int, model: Model, watcher: Watcher) -> PointResult:
        try:
            opened = self.opened.open_point(index)
            if isinstance(opened, OpenedJob):
                self.opened.note_resumed(index, is_resumed=opened.state.status is RunStatus.RESUME)
                return PointResult(outcome=serve_job(opened, watcher=watcher, model=model))
        except (BatchspecError, RuntimeError, MemoryError) as error:
            sentence = str(error) if isinstance(error, BatchspecError) else f"{type(error).__name__}: {error}"
            watcher.say(f"this point cannot run: {sentence}")
            return PointResult(failure=" ".join(sentence.split()))
        watcher.say("it was run before")
        return PointResult(outcome=opened)
