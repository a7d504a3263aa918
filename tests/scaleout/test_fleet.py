"""A job served by several workers is the job in one process, also when workers are lost in the middle."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batchspec.drafting import SpeculativeConfig
from batchspec.errors import UsageError
from batchspec.job.outcome import ExitStatus
from batchspec.job.settings import JobSettings
from batchspec.scaleout.worker import Facts, Given, Reply
from tests.job import conftest
from tests.job.conftest import RunLines
from tests.job.test_resume import stop_after
from tests.scaleout.comparing import MIXED_ROWS, assert_same_run, document, records_of
from tests.scaleout.local import LocalWorkers, serve_with_fleet

Make = Callable[[JobSettings], LocalWorkers]


@pytest.fixture
def run_fleet(run_lines: RunLines, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return ``run_lines`` with a fleet in the place of the engine."""

    def run(rows: list[Any], make: Make = LocalWorkers, *, said: list[str] | None = None, **settings: Any) -> Any:
        number = settings.pop("num_workers", 2)
        with monkeypatch.context() as patch:
            served = lambda job: serve_with_fleet(job, make, num_workers=number, said=said)  # noqa: E731
            patch.setattr(conftest, "run_job", served)
            return run_lines(rows, **settings)

    return run


@pytest.mark.parametrize("num_workers", [1, 3])
def test_a_fleet_leaves_the_run_directory_of_one_engine(
    run_lines: RunLines, run_fleet: Callable[..., Any], tmp_path: Path, num_workers: int
) -> None:
    run_lines(MIXED_ROWS, run_dir=tmp_path / "single")
    outcome, _ = run_fleet(MIXED_ROWS, num_workers=num_workers, max_num_seqs=8)
    assert outcome.status is ExitStatus.FAILURES, "three lines cannot be served"
    assert_same_run(tmp_path / "run", tmp_path / "single")
    assert document(tmp_path / "run", "manifest.json")["engine"]["num_workers"] == num_workers
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
        (line,) = (line for line in (tmp_path / "run/metrics.prom").read_text().splitlines() if f":{name}{{" in line)
        assert float(line.split()[-1]) == 0, "nothing runs any more"


@pytest.mark.parametrize("seed", range(4))
def test_lost_workers_lose_no_record_and_double_none(
    run_lines: RunLines, run_fleet: Callable[..., Any], tmp_path: Path, seed: int
) -> None:
    """Workers are lost behind some replies or amid requests; what one had counted and not finished is named."""
    run_lines(MIXED_ROWS, run_dir=tmp_path / "single")
    said: list[str] = []

    def is_lost(number: int, replies: int, in_flight: int) -> bool:
        return (number < 6 and replies == 1 + number % 3) or (number < 9 and in_flight > 0)

    def make(settings: JobSettings) -> LocalWorkers:
        return LocalWorkers(settings, is_lost=is_lost, seed=seed)

    outcome, records = run_fleet(MIXED_ROWS, make, said=said, max_num_seqs=8)
    assert len({record["id"] for record in records}) == len(records) == len(MIXED_ROWS)
    assert_same_run(tmp_path / "run", tmp_path / "single", redone=True)
    steps = outcome.report["reconciliation"]["rows"][0]
    assert steps["unreported"]["worker lost"] > 0
    assert steps["difference"] == 0
    lost = [sentence for sentence in said if "was lost (the test says so)" in sentence]
    assert len(lost) >= 2
    assert any("requests are served again" in sentence for sentence in lost)


@pytest.mark.parametrize(("is_fleet_first", "num_steps"), [(True, 14), (False, 6)])
def test_a_run_that_was_stopped_goes_on_with_more_or_fewer_machines(
    run_lines: RunLines,
    run_fleet: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    is_fleet_first: bool,
    num_steps: int,
) -> None:
    run_lines(MIXED_ROWS, run_dir=tmp_path / "single")
    first: Callable[..., Any]
    second: Callable[..., Any]
    first, second = (run_fleet, run_lines) if is_fleet_first else (run_lines, run_fleet)
    with monkeypatch.context() as patch:
        stop_after(patch, num_steps)
        outcome, part = first(MIXED_ROWS, max_num_seqs=8)
    assert outcome.status is ExitStatus.INTERRUPTED
    assert len(part) < len(MIXED_ROWS)
    outcome, _ = second(MIXED_ROWS, max_num_seqs=8)
    assert_same_run(tmp_path / "run", tmp_path / "single", redone=True)
    assert outcome.report is not None
    assert outcome.report["reconciliation"]["rows"][0]["unreported"]["interrupted"] > 0


def test_records_may_leave_as_they_are_done(run_fleet: Callable[..., Any], run_lines: RunLines, tmp_path: Path) -> None:
    run_lines(MIXED_ROWS, run_dir=tmp_path / "single")
    run_fleet(MIXED_ROWS, in_order=False, max_num_seqs=8)
    assert sorted(records_of(tmp_path / "run")) == sorted(records_of(tmp_path / "single"))


def test_drafters_that_learn_survive_a_loss_and_say_what_they_learn_from(
    run_fleet: Callable[..., Any], run_lines: RunLines, tmp_path: Path
) -> None:
    rows = [{"prompt": "Write a sentence about the harbour.", "max_tokens": 5, "seed": i} for i in range(140)]
    suffix = SpeculativeConfig.from_mapping({"method": "suffix"})
    run_lines(rows, run_dir=tmp_path / "single", speculative=suffix, max_num_seqs=16)

    def make(settings: JobSettings) -> LocalWorkers:
        return LocalWorkers(settings, is_lost=lambda number, replies, _: number == 1 and replies == 4)

    outcome, records = run_fleet(rows, make, speculative=suffix, max_num_seqs=16)
    assert [record["custom_id"] for record in records] == [f"line-{i + 1}" for i in range(140)]
    texts = [record["response"]["body"]["choices"] for record in records]
    assert texts == [record["response"]["body"]["choices"] for record in conftest.read_responses(tmp_path / "single")]
    assert outcome.report["reconciliation"]["is_exact"]
    assert "same worker" in document(tmp_path / "run", "manifest.json")["resolved"]["drafts_learn_from"]


def test_workers_that_are_lost_again_and_again_end_the_run_with_a_sentence(
    run_lines: RunLines, run_fleet: Callable[..., Any], tmp_path: Path
) -> None:
    def make(settings: JobSettings) -> LocalWorkers:
        return LocalWorkers(settings, is_lost=lambda _, replies, __: replies == 1)

    with pytest.raises(UsageError, match="6 workers were lost one after the other without a record"):
        run_fleet(MIXED_ROWS, make)
    run_lines(MIXED_ROWS, run_dir=tmp_path / "single")
    run_fleet(MIXED_ROWS)
    assert_same_run(tmp_path / "run", tmp_path / "single")


class Odd(LocalWorkers):
    """The second worker says that it is another device."""

    def facts(self, number: int) -> Facts:
        facts = super().facts(number)
        return replace(facts, resolved={**facts.resolved, "device": "abacus"}) if number == 2 else facts


def test_workers_that_are_not_alike_are_refused(run_fleet: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"worker \d on .* resolved device .*, the first one on .*same devices"):
        run_fleet(MIXED_ROWS, Odd)
    assert not (tmp_path / "run").exists()


class Forgetful(LocalWorkers):
    """A worker tells one accepted token less than it has counted."""

    def reply(self, number: int, given: Sequence[Given]) -> Reply:
        reply = super().reply(number, given)
        name = "spec_decode_num_accepted_tokens"
        counters = {**reply.account["counters"], name: max(0, reply.account["counters"][name] - 1)}
        return replace(reply, account={**reply.account, "counters": counters})


def test_a_count_that_is_lost_on_the_way_shows(run_fleet: Callable[..., Any]) -> None:
    outcome, _ = run_fleet(MIXED_ROWS[:9], Forgetful)
    assert outcome.status is ExitStatus.FAILURES
    assert outcome.report["reconciliation"]["num_differences"] > 0
