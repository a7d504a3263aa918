"""Whatever moment a run is killed at, its files can be read, and it continues to the records of an undisturbed run."""

import random
import shutil
import signal
from collections.abc import Callable

import pytest

from tests.reliability.command import run, run_and_signal
from tests.reliability.conftest import Job
from tests.reliability.judging import faults_behind_a_crash, faults_of_a_finished_run
from tests.reliability.workload import SHAPES, Shape

NUM_POINTS = 1  # in each shape; the long form has as many as one wants: see ``every_operation``


@pytest.mark.parametrize("shape", SHAPES[1:2], ids=lambda shape: shape.name)
def test_a_kill_before_any_file_operation_loses_and_doubles_nothing(make_job: Callable[..., Job], shape: Shape) -> None:
    job = make_job(shape)
    assert job.num_operations > 200
    for before in _spread(job.num_operations, NUM_POINTS, random.Random(shape.name)):
        killed = job.fork.run(job.args(), before=before)
        assert killed.status == -signal.SIGKILL, killed.stderr
        assert faults_behind_a_crash(job.run_dir, job.output, job.whole) == []
        job.finish()
        shutil.rmtree(job.run_dir)


def test_a_run_that_is_killed_again_and_again_comes_to_its_end(make_job: Callable[..., Job]) -> None:
    job = make_job(SHAPES[1])
    dice = random.Random(5)
    for _ in range(6):
        job.fork.run(job.args(), before=dice.randint(20, job.num_operations // 4))
        assert faults_behind_a_crash(job.run_dir, job.output, job.whole) == []
    job.finish()


def test_the_installed_command_survives_a_kill(make_job: Callable[..., Job]) -> None:
    job = make_job(SHAPES[1])
    killed = run_and_signal(job.args(), behind=2.5)
    assert killed.status in (-signal.SIGKILL, 1)
    assert faults_behind_a_crash(job.run_dir, job.output, job.whole) == []
    assert run(job.args()).status == 1
    assert faults_of_a_finished_run(job.run_dir, job.output, job.whole) == []


def _spread(last: int, number: int, dice: random.Random) -> list[int]:
    """Return a point in each of so many equal parts of ``1..last``, so that start and finish are among them."""
    return [dice.randint(1 + last * i // number, last * (i + 1) // number) for i in range(number)]
