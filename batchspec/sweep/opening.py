"""Whether a sweep can start, continue, or has ended; asked before anything heavy is imported or anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batchspec.errors import UsageError
from batchspec.files import RunState, open_run, open_source
from batchspec.files.lock import LOCK_NAME
from batchspec.files.runstate import clear_run, found_manifest
from batchspec.job.opening import OpenedJob, identify_model, open_job
from batchspec.job.outcome import JobOutcome
from batchspec.sweep.settings import SweepSettings

__all__ = ["OWN_FILES", "OpenedSweep", "open_sweep"]

OWN_FILES = ("sweep.json", "sweep.md")


@dataclass(frozen=True, kw_only=True)
class OpenedSweep:
    """A sweep that was found fit to run.

    Attributes:
        settings: what to do.
        model: what identifies the model.
        state: the sweep's directory.
        earlier: names of directories of an earlier sweep's runs, which a fresh one replaces.
    """

    settings: SweepSettings
    model: Mapping[str, Any]
    state: RunState
    earlier: tuple[str, ...]

    def open_point(self, index: int) -> OpenedJob | JobOutcome:
        """Return the run of a point, or how it ended; raises as ``open_job``."""
        return open_job(self.settings.job_at(index, overwrite=False), model=self.model)

    def finished(self) -> list[JobOutcome]:
        """Return how the points' runs ended, those that have; raises as ``open_job``."""
        if not self.state.manifest.get("is_cleared"):
            return []
        points = map(self.open_point, range(len(self.settings.points)))
        return [point for point in points if isinstance(point, JobOutcome)]

    def begin(self, **fields: Any) -> None:
        """Lock the directory, write the manifest, and remove what a fresh sweep replaces; raises as ``RunState``."""
        self.state.begin(**fields)
        if not self.state.manifest.get("is_cleared"):
            for name in dict.fromkeys([*self.earlier, *self.settings.directories]):
                _remove_run(self.state.directory / name)
            for name in OWN_FILES:
                self.state.path(name).unlink(missing_ok=True)
            self.state.save(is_cleared=True, runs=self.settings.directories)

    def note_resumed(self, index: int, *, is_resumed: bool) -> None:
        """Remember whether a run is continued: its time then covers work that is done again."""
        others = self.resumed - {self.settings.directories[index]}
        self.state.save(resumed=sorted(others | ({self.settings.directories[index]} if is_resumed else set())))

    @property
    def resumed(self) -> frozenset[str]:
        """Names of the directories of runs that were interrupted and continued."""
        return frozenset(self.state.manifest.get("resumed", ()))


def open_sweep(settings: SweepSettings) -> OpenedSweep:
    """Check everything that can be checked without the model; nothing is written.

    Raises:
        UsageError: the sweep cannot start, or its directory holds another one.
    """
    job = settings.job
    dataset = open_source(job.input).dataset()
    if dataset["fingerprint"] is None:
        raise UsageError("a sweep reads its input once for each point, which a stream cannot be: give a file.")
    model = identify_model(job.model)
    _check_paths(settings)
    state = open_run(
        job.run_dir, parameters=settings.parameters(), model=model, dataset=dataset, overwrite=job.overwrite
    )
    for index in range(len(settings.points)):
        open_job(settings.job_at(index, overwrite=job.overwrite), model=model)
    return OpenedSweep(settings=settings, model=model, state=state, earlier=_earlier_runs(job.run_dir))


def _check_paths(settings: SweepSettings) -> None:
    """Raise UsageError for an earlier run or a draft model that is not there."""
    for path in {point.engine.speculative.path for point in settings.points} - {None}:
        open_source(str(path))
    for name in {point.engine.speculative.model for point in settings.points} - {None}:
        try:
            identify_model(name)
        except UsageError as error:
            raise UsageError(f"--grid: draft_model {name}: {str(error).removeprefix(f'--model {name}: ')}") from error


def _earlier_runs(directory: Path) -> tuple[str, ...]:
    """Return the names of the runs' directories that an earlier sweep tells of."""
    names = (found_manifest(directory) or {}).get("runs")
    known = names if isinstance(names, list) else ()
    return tuple(name for name in known if isinstance(name, str) and name == Path(name).name)


def _remove_run(directory: Path) -> None:
    """Remove a run; of its directory whatever else is in it stays."""
    if directory.is_dir():
        clear_run(directory)
        (directory / LOCK_NAME).unlink(missing_ok=True)
        if not any(directory.iterdir()):
            directory.rmdir()
