"""A job whose undisturbed run is known, and a place of its own for every test."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from batchspec.model.load import load_model
from tests.reliability.command import arguments
from tests.reliability.judging import faults_of_a_finished_run, records_of, without_time
from tests.reliability.operations import Fork
from tests.reliability.workload import SHAPES, Shape, write_input

NUM_ROWS = 24


@dataclass(frozen=True, kw_only=True)
class Job:
    """The job of a test.

    Attributes:
        fork: runs it.
        input_path: its input.
        place: run directory and output are made in it.
        shape: how it is run.
        whole: the records of the undisturbed run.
        num_operations: file operations of that.
    """

    fork: Fork
    input_path: Path
    place: Path
    shape: Shape
    whole: list[dict[str, Any]]
    num_operations: int

    @property
    def run_dir(self) -> Path:
        return self.place / "run"

    @property
    def output(self) -> Path | None:
        return self.place / f"answers{self.shape.suffix}" if self.shape.suffix else None

    def args(self, *more: str) -> list[str]:
        return arguments(self.input_path, self.run_dir, (*self.shape.flags, *more), self.output)

    def finish(self) -> None:
        """Run the same command to its end: then nothing may be lost, doubled or changed."""
        ended = self.fork.run(self.args())
        assert ended.status == 1, ended.stderr  # as some lines are wrong
        assert faults_of_a_finished_run(self.run_dir, self.output, self.whole) == []


@pytest.fixture(scope="session")
def fork() -> Fork:
    return Fork(load_model(device="cpu"))


@pytest.fixture(scope="session")
def undisturbed(fork: Fork, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    """The undisturbed run in every shape, by its name."""
    jobs = {}
    for shape in SHAPES:
        place = tmp_path_factory.mktemp("undisturbed")
        path = write_input(place / "in.jsonl", number=NUM_ROWS)
        job = Job(fork=fork, input_path=path, place=place, shape=shape, whole=[], num_operations=0)
        num_operations = fork.num_operations(job.args())
        whole = without_time(records_of(job.run_dir))
        jobs[shape.name] = Job(
            fork=fork, input_path=path, place=place, shape=shape, whole=whole, num_operations=num_operations
        )
    return jobs


@pytest.fixture
def make_job(undisturbed: dict[str, Job], tmp_path: Path) -> Callable[..., Job]:
    def make(shape: Shape = SHAPES[0], *, place: Path = tmp_path) -> Job:
        job = undisturbed[shape.name]
        path = write_input(tmp_path / "in.jsonl", number=NUM_ROWS)
        return Job(
            fork=job.fork,
            input_path=path,
            place=place,
            shape=shape,
            whole=job.whole,
            num_operations=job.num_operations,
        )

    return make
