"""What a sweep is asked to do."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from batchspec.job.settings import JobSettings, default_run_dir
from batchspec.sweep.grid import Point, parse_grids
from batchspec.sweep.keys import KEYS

__all__ = ["SweepSettings", "default_sweep_dir"]

_LONGEST_NAME = 100
_SAID_BY_GRID = ("order", "num_speculative_tokens", "model", "path", *KEYS)


@dataclass(frozen=True, kw_only=True)
class SweepSettings:
    """Everything about a sweep.

    Attributes:
        job: what all its runs have in common; its directory is the sweep's.
        points: what they differ in.
    """

    job: JobSettings
    points: tuple[Point, ...]

    @classmethod
    def for_grids(cls, grids: Sequence[str], job: JobSettings) -> "SweepSettings":
        """Return the sweep over some grids; UsageError for what cannot work."""
        job.check()
        return cls(job=job, points=parse_grids(grids, job.engine))

    @property
    def directories(self) -> tuple[str, ...]:
        """The names of the runs' directories within the sweep's."""
        return tuple(_directory(i, point) for i, point in enumerate(self.points, start=1))

    def job_at(self, index: int, *, overwrite: bool) -> JobSettings:
        """Return the run of a point."""
        directory = self.job.run_dir / self.directories[index]
        return replace(self.job, run_dir=directory, engine=self.points[index].engine, overwrite=overwrite)

    def parameters(self) -> dict[str, Any]:
        """Return everything that must stay the same for an interrupted sweep to be continued, by flag name."""
        common = self.job.parameters()
        kept = {name: value for name, value in common.items() if name not in _SAID_BY_GRID}
        return {"grid": [point.name for point in self.points], **kept}


def default_sweep_dir(input: str) -> Path:
    """Return the directory of a run on this input, with ``-sweep`` behind its name."""
    directory = default_run_dir(input)
    return directory.with_name(f"{directory.name}-sweep")


def _directory(number: int, point: Point) -> str:
    """Return a name that tells the point, without what a shell or a file system would stumble over."""
    return f"{number:03}-" + re.sub(r"[^\w.=-]+", "-", point.name, flags=re.ASCII)[:_LONGEST_NAME].strip("-.")
