"""An interrupted run continues to the same records and to accounts that still agree."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batchspec.desk import Desk
from batchspec.drafting import SpeculativeConfig
from batchspec.engine import EngineCore
from batchspec.errors import UsageError
from batchspec.files import RowDefaults
from batchspec.job import checkpoints
from batchspec.job.outcome import ExitStatus
from tests.job.conftest import RunLines, read_responses
from tests.job.test_run import prompt

ROWS = [prompt(f"{i}", temperature=0.8, n=2 if i % 5 == 4 else 1, max_tokens=8 + i % 7) for i in range(24)]


@pytest.fixture
def whole(run_lines: RunLines, tmp_path: Path) -> list[dict[str, Any]]:
    """The records of the run that nothing interrupts."""
    _, records = run_lines(ROWS, run_dir=tmp_path / "whole", max_num_seqs=4)
    return records


def without_time(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for record in records:
        record["response"]["body"].pop("created", None)
    return records


def stop_after(monkeypatch: pytest.MonkeyPatch, num_steps: int) -> None:
    """Make the process receive SIGINT in its n-th engine step."""
    step = EngineCore.step
    count = 0

    def counted(self: EngineCore) -> Any:
        nonlocal count
        count += 1
        if count == num_steps:
            signal.raise_signal(signal.SIGINT)
        return step(self)

    monkeypatch.setattr(EngineCore, "step", counted)


@pytest.mark.parametrize("num_steps", [1, 9, 21])
@pytest.mark.parametrize("in_order", [True, False])
def test_an_interrupted_run_continues_to_the_same_records(
    run_lines: RunLines,
    whole: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    num_steps: int,
    in_order: bool,
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, num_steps)
        outcome, part = run_lines(ROWS, max_num_seqs=4, in_order=in_order)
    assert outcome.status is ExitStatus.INTERRUPTED
    assert len(part) < len(ROWS)
    outcome, records = run_lines(ROWS, max_num_seqs=4, in_order=in_order)
    assert outcome.status is ExitStatus.DONE
    assert outcome.report is not None
    assert outcome.report["reconciliation"]["num_differences"] == 0
    assert sorted(without_time(records), key=lambda record: record["id"]) == without_time(whole)


def test_records_that_wait_for_an_earlier_one_are_accounted_for(
    run_lines: RunLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are done and counted, but not written, when the run is stopped: the counters must not lose their cause."""
    rows = [prompt("long", max_tokens=60), *(prompt(f"{i}", max_tokens=6) for i in range(9))]
    with monkeypatch.context() as patch:
        stop_after(patch, 16)
        _, part = run_lines(rows, max_num_seqs=4)
    assert part == []
    outcome, records = run_lines(rows, max_num_seqs=4)
    assert len(records) == len(rows)
    assert outcome.report is not None
    assert outcome.report["reconciliation"]["num_differences"] == 0
    assert outcome.report["reconciliation"]["rows"][0]["unreported"]["interrupted"] > 0


def test_a_killed_run_is_repaired_and_reconciles(
    run_lines: RunLines, whole: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The process dies behind a checkpoint, in the middle of a line, with no chance to clean up."""

    class Killed(BaseException):
        pass

    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", 0.0)
    close = Desk.close
    count = 0

    def dying(self: Desk, *args: Any, **kwargs: Any) -> None:
        nonlocal count
        count += 1
        if count == 15:
            raise Killed
        close(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Desk, "close", dying)
        with pytest.raises(Killed):
            run_lines(ROWS, max_num_seqs=4)
    journal = tmp_path / "run" / "responses.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"id":"batch_req_000000')
    outcome, records = run_lines(ROWS, max_num_seqs=4)
    assert outcome.status is ExitStatus.DONE
    assert outcome.report is not None
    assert outcome.report["reconciliation"]["num_differences"] == 0
    assert without_time(records) == without_time(whole)


def test_records_without_their_counters_are_named(
    run_lines: RunLines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, 21)
        run_lines(ROWS, max_num_seqs=4)
    (tmp_path / "run" / "checkpoint.json").unlink()
    outcome, records = run_lines(ROWS, max_num_seqs=4)
    assert outcome.report is not None
    row = outcome.report["reconciliation"]["rows"][0]
    assert row["unreported"]["kept without counters"] < 0
    assert (outcome.status, row["difference"], len(records)) == (ExitStatus.DONE, 0, len(ROWS))


def test_a_finished_run_does_nothing(run_lines: RunLines, tmp_path: Path) -> None:
    run_lines(ROWS[:3])
    before = (tmp_path / "run" / "responses.jsonl").stat().st_mtime_ns
    outcome, _ = run_lines(ROWS[:3])
    assert "finished" in outcome.sentences[0]
    assert outcome.report is not None
    assert (tmp_path / "run" / "responses.jsonl").stat().st_mtime_ns == before


def test_a_finished_run_still_writes_an_output_that_is_asked_for(run_lines: RunLines, tmp_path: Path) -> None:
    _, records = run_lines(ROWS[:3])
    run_lines(ROWS[:3], output=tmp_path / "late.jsonl")
    assert (tmp_path / "late.jsonl").read_bytes() == (tmp_path / "run" / "responses.jsonl").read_bytes()
    assert len(records) == 3
    (tmp_path / "run" / "responses.jsonl").unlink()
    with pytest.raises(UsageError, match="responses are gone"):
        run_lines(ROWS[:3])


def _cut_a_record(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _tear_the_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _spoil_the_first(path: Path) -> None:
    path.write_bytes(b"#" + path.read_bytes()[1:])


def _repeat_all(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (_cut_a_record, "it holds 2 records, and the manifest says 3"),
        (_tear_the_end, "line 3 is not a whole record"),
        (_spoil_the_first, "line 1 is not a whole record"),
        (_repeat_all, "line 4 is not a whole record"),
    ],
)
def test_a_finished_run_whose_responses_were_damaged_afterwards_is_not_shown_as_whole(
    run_lines: RunLines, tmp_path: Path, damage: Callable[[Path], None], expected: str
) -> None:
    rows = ROWS[:3]
    run_lines(rows)
    assert "nothing was done" in run_lines(rows)[0].sentences[0]
    damage(tmp_path / "run" / "responses.jsonl")
    with pytest.raises(UsageError, match=rf"responses.jsonl is damaged: {expected}.*: use --overwrite"):
        run_lines(rows)
    assert len(run_lines(rows, overwrite=True)[1]) == 3


def test_changed_parameters_are_named_and_refused(run_lines: RunLines, tmp_path: Path) -> None:
    run_lines(ROWS[:3])
    before = (tmp_path / "run" / "responses.jsonl").read_bytes()
    with pytest.raises(UsageError, match=r"--temperature was null, now 0\.5"):
        run_lines(ROWS[:3], defaults=RowDefaults(temperature=0.5))
    assert (tmp_path / "run" / "responses.jsonl").read_bytes() == before
    outcome, records = run_lines(ROWS[:2], overwrite=True)
    assert (outcome.status, len(records)) == (ExitStatus.DONE, 2)


def test_the_checkpoint_is_plain_json(run_lines: RunLines, tmp_path: Path) -> None:
    run_lines(ROWS[:3])
    document = json.loads((tmp_path / "run" / "checkpoint.json").read_text())
    assert document["num_records"] == len(read_responses(tmp_path / "run"))


@pytest.mark.parametrize("num_steps", [40, 75])
def test_what_the_drafter_has_learnt_from_outputs_is_learnt_again(
    run_lines: RunLines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, num_steps: int
) -> None:
    """The acceptance of every request is the same as without the interruption, though others' outputs decide it."""
    rows = [prompt(f"{i}", text="Write a sentence about the harbour.", max_tokens=12 + i % 3) for i in range(150)]
    suffix = {"speculative": SpeculativeConfig.from_mapping({"method": "suffix"}), "max_num_seqs": 16}
    outcome, whole = run_lines(rows, run_dir=tmp_path / "whole", **suffix)
    assert outcome.report is not None
    assert outcome.report["sources"]["suffix_global"]["num_steps"] > 0
    with monkeypatch.context() as patch:
        stop_after(patch, num_steps)
        _, part = run_lines(rows, **suffix)
    assert 0 < len(part) < len(rows)
    outcome, records = run_lines(rows, **suffix)
    assert without_time(records) == without_time(whole)
    assert outcome.report is not None
    assert outcome.report["reconciliation"]["num_differences"] == 0
    totals, counters = outcome.report["sources"], outcome.report["counters"]
    for kind in ("num_draft_tokens", "num_accepted_draft_tokens"):
        assert sum(counts[kind] for counts in totals.values()) == counters[kind]
