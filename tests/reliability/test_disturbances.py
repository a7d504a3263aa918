"""Signals, full disks, directories and inputs that go away or change, two runs at once: a sentence, nothing lost."""

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from tempfile import gettempdir

import pytest

from tests.reliability.command import Ended, run_and_signal
from tests.reliability.conftest import Job
from tests.reliability.judging import faults_behind_a_crash
from tests.reliability.workload import SHAPES, write_input

NOBODY = 65534


def assert_refused(ended: Ended, *words: str) -> None:
    """The process said why in one line, and in no other way."""
    assert ended.status == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.last_line.startswith("batchspec: ")
    for word in words:
        assert word in ended.last_line


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_signal_ends_the_run_behind_its_step_and_says_how_to_go_on(
    make_job: Callable[..., Job], number: int, status: int, share: float
) -> None:
    job = make_job(SHAPES[1])
    ended = job.fork.run(job.args(), before=int(share * job.num_operations), do=lambda: signal.raise_signal(number))
    assert ended.status == status, ended.stderr
    assert ended.last_line.startswith("batchspec: interrupted behind ")
    assert ended.last_line.endswith(" records: run the same command again to continue")
    assert "Traceback" not in ended.stderr
    assert faults_behind_a_crash(job.run_dir, job.output, job.whole) == []
    job.finish()


def test_a_run_that_began_with_overwrite_does_not_tell_to_overwrite_what_it_has_done(
    make_job: Callable[..., Job],
) -> None:
    job = make_job()
    before = job.num_operations // 2
    ended = job.fork.run(job.args("--overwrite"), before=before, do=lambda: signal.raise_signal(signal.SIGINT))
    assert ended.last_line.endswith("run the same command without --overwrite to continue")
    job.finish()


def test_the_second_signal_ends_the_run_at_once(make_job: Callable[..., Job]) -> None:
    job = make_job()

    def twice() -> None:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)

    ended = job.fork.run(job.args(), before=job.num_operations // 2, do=twice)
    assert (ended.status, ended.last_line) == (
        143,
        "batchspec: interrupted: run the same command again to continue",
    )
    job.finish()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_installed_command_is_interrupted_while_it_starts(
    make_job: Callable[..., Job], number: int, status: int
) -> None:
    job = make_job()
    ended = run_and_signal(job.args(), behind=1.2, number=number)
    assert ended.status == status, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "run the same command again" in ended.last_line


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, where one may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("shape", SHAPES[:3], ids=lambda shape: shape.name)
def test_a_full_disk_is_a_sentence_and_the_run_continues_on_a_larger_one(
    make_job: Callable[..., Job], small_disk: Path, shape: object
) -> None:
    job = make_job(shape, place=small_disk)
    for _ in range(2):
        ended = job.fork.run(job.args())
        assert ended.status in (1, 2)  # 1 where there was room for the records and not for their second copy
        assert "No space left on device" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert faults_behind_a_crash(job.run_dir, job.output, job.whole) == []
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    job.finish()


def test_a_limit_on_files_is_a_sentence_too(make_job: Callable[..., Job]) -> None:
    """Stands in for a quota, where no file system may be mounted."""
    job = make_job()
    limit = 10_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    assert_refused(job.fork.run(job.args(), prepare=limited), "File too large", "run the same command again")
    assert (job.run_dir / "responses.jsonl").stat().st_size <= limit
    assert faults_behind_a_crash(job.run_dir, job.output, job.whole) == []
    job.finish()


@pytest.mark.parametrize("replace", [False, True])
def test_a_run_directory_that_goes_away_is_a_sentence(make_job: Callable[..., Job], replace: bool) -> None:
    """Also where another stands in its place: nothing may be written beside records that are gone."""
    job = make_job()

    def remove() -> None:
        job.run_dir.rename(job.place / "moved")
        if replace:
            job.run_dir.mkdir()

    ended = job.fork.run(job.args(), before=job.num_operations // 2, do=remove)
    assert_refused(ended, str(job.run_dir))
    assert not replace or list(job.run_dir.iterdir()) == []
    shutil.rmtree(job.run_dir, ignore_errors=True)
    (job.place / "moved").rename(job.run_dir)
    job.finish()


def test_a_run_directory_that_becomes_read_only_is_a_sentence(make_job: Callable[..., Job]) -> None:
    job = make_job()

    def become_nobody() -> None:
        if os.getuid() == 0:  # whom no permission stops
            for path in (job.place, *takewhile(lambda parent: parent != Path(gettempdir()), job.place.parents)):
                path.chmod(0o777)
            os.setuid(NOBODY)

    ended = job.fork.run(
        job.args(), before=job.num_operations // 2, do=lambda: job.run_dir.chmod(0o500), prepare=become_nobody
    )
    assert_refused(ended, "Permission denied", "run the same command again to continue")
    assert faults_behind_a_crash(job.run_dir, job.output, job.whole) == []
    job.run_dir.chmod(0o700)
    job.finish()


@pytest.mark.parametrize("change", ["cut", "longer", "other"])
def test_an_input_that_changed_between_two_runs_is_refused(make_job: Callable[..., Job], change: str) -> None:
    job = make_job()
    job.fork.run(job.args(), before=job.num_operations // 2)
    kept = {path.name: path.read_bytes() for path in job.run_dir.iterdir()}
    content = job.input_path.read_bytes()
    changed = {
        "cut": content[:-200],
        "longer": content + content[:200],
        "other": content.replace(b"Monday", b"Moonday"),
    }
    job.input_path.write_bytes(changed[change])
    assert_refused(job.fork.run(job.args()), "the input's fingerprint was ", "use --overwrite or another --run-dir")
    assert {path.name: path.read_bytes() for path in job.run_dir.iterdir()} == kept
    job.input_path.write_bytes(content)
    job.finish()


def test_a_change_in_the_middle_of_a_large_input_is_seen_as_far_as_it_was_read(make_job: Callable[..., Job]) -> None:
    """The fingerprint knows size and edges alone; what was read is known by its hash."""
    job = make_job()
    content = job.input_path.read_bytes()
    job.input_path.write_bytes(b" " * (3 * 2**20) + b"\n" + content + b" " * 2**20)  # blank lines are no rows
    middle = 2**20 + 2**19
    job.fork.run(job.args(), before=job.num_operations // 2)
    kept = {path.name: path.read_bytes() for path in job.run_dir.iterdir()}
    with job.input_path.open("r+b") as file:
        file.seek(middle)
        file.write(b"\t")
    assert_refused(job.fork.run(job.args()), "has changed since the run read it", "--overwrite")
    assert {path.name: path.read_bytes() for path in job.run_dir.iterdir()} == kept


def test_two_runs_into_one_directory_end_in_one_run(make_job: Callable[..., Job], tmp_path: Path) -> None:
    job = make_job(SHAPES[1])
    seen = tmp_path / "seen"

    def second() -> None:
        others = [job.fork.run(job.args()), job.fork.run(job.args("--overwrite"))]
        seen.write_text("\n".join(f"{other.status} {other.last_line}" for other in others))

    assert job.fork.run(job.args(), before=job.num_operations // 2, do=second).status == 1
    refusal = f"2 batchspec: another run is writing to {job.run_dir}: wait until it ends, or choose another --run-dir"
    assert seen.read_text().splitlines() == [refusal] * 2
    job.finish()


def test_a_lock_ends_with_the_process_that_held_it(make_job: Callable[..., Job]) -> None:
    job = make_job()
    assert job.fork.run(job.args(), before=job.num_operations // 2).status == -signal.SIGKILL
    assert (job.run_dir / ".lock").exists()
    job.finish()


def test_two_runs_do_not_write_the_same_parts(make_job: Callable[..., Job], tmp_path: Path) -> None:
    job = make_job(SHAPES[1])
    seen = tmp_path / "seen"
    other = [str(tmp_path / "other") if arg == str(job.run_dir) else arg for arg in job.args()]

    def second() -> None:
        ended = job.fork.run(other)
        seen.write_text(f"{ended.status} {ended.last_line}")

    assert job.fork.run(job.args(), before=job.num_operations // 2, do=second).status == 1
    assert seen.read_text().startswith("2 batchspec: another run is writing to ")
    assert write_input(job.input_path, number=24).exists()
    job.finish()
