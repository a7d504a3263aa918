"""A grid run for real: once each, resumable, compared, and what happens where something is wrong."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.errors import UsageError
from batchspec.job.outcome import ExitStatus
from batchspec.requirements import parse_requirements
from batchspec.sweep import running
from tests.job.test_resume import stop_after, without_time

from .conftest import ROWS, SEEDED, RunGrid, names_of

GRID = "method=none,ngram k=1,3 max_num_seqs=1,4"


def responses(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "responses.jsonl").read_text().splitlines()]


def run_dirs(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "sweep").iterdir() if path.is_dir())


def times_of(tmp_path: Path) -> list[int]:
    return [(path / "responses.jsonl").stat().st_mtime_ns for path in run_dirs(tmp_path)]


@pytest.fixture
def no_warming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "warm_up", lambda *_: None)


def test_a_grid_is_run_with_one_model_and_compared(sweep: RunGrid, loads: list[object], tmp_path: Path) -> None:
    heard: list[str] = []
    outcome = sweep(GRID, defaults=SEEDED, heard=heard)
    assert outcome.status is ExitStatus.DONE
    assert len(loads) == 1
    assert heard[0] == "warming up"
    assert [text for text in heard if text.startswith("point")][:2] == [
        "point 1 of 6: method=none max_num_seqs=1",
        "point 2 of 6: method=none max_num_seqs=4",
    ]
    document = outcome.document
    assert document is not None
    assert document == json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert (tmp_path / "sweep" / "sweep.md").read_text().startswith("# Sweep\n")
    assert document["outputs"] == {
        "a": "method=none max_num_seqs=1",
        "num_points": 6,
        "is_identical": True,
        "points": {
            name: {"num_compared": 8, "num_with_token_ids": 0, "num_different": 0} for name in names_of(outcome)[1:]
        },
        "first_difference": None,
    }
    for directory, point in zip(run_dirs(tmp_path), document["points"], strict=True):
        report = json.loads((directory / "report.json").read_text())
        assert point["run_dir"] == str(directory)
        for name in ("requests", "tokens", "throughput", "acceptance", "reconciliation"):
            assert point[name] == report[name]
        assert (report["reconciliation"] or {"num_differences": 0})["num_differences"] == 0
        size = point["values"]["max_num_seqs"]
        assert point["baseline"] == f"method=none max_num_seqs={size}"
        baseline = document["points"][names_of(outcome).index(point["baseline"])]
        rates = [each["throughput"]["output_tokens_per_second"] for each in (point, baseline)]
        assert point["speedup"] == pytest.approx(rates[0] / rates[1])
    assert document["points"][2]["acceptance"]["pooled"]["num_spec_steps"] > 0
    assert set(document["points"][2]["categories"]) == {"a", "b"}


def test_nothing_is_done_again(sweep: RunGrid, loads: list[object], tmp_path: Path) -> None:
    first = sweep("method=none,ngram max_num_seqs=4")
    before = times_of(tmp_path)
    heard: list[str] = []
    second = sweep("method=none,ngram max_num_seqs=4", heard=heard)
    assert (second.document, second.status) == (first.document, first.status)
    assert (times_of(tmp_path), heard, len(loads)) == (before, [], 1)


def test_a_run_that_is_gone_is_the_only_one_that_is_done_again(sweep: RunGrid, tmp_path: Path) -> None:
    sweep("method=none,ngram max_num_seqs=4")
    before = times_of(tmp_path)
    for path in run_dirs(tmp_path)[1].iterdir():
        path.unlink()
    heard: list[str] = []
    outcome = sweep("method=none,ngram max_num_seqs=4", heard=heard)
    assert outcome.status is ExitStatus.DONE
    assert "it was run before" in heard[heard.index("point 1 of 2: method=none max_num_seqs=4") + 1]
    after = times_of(tmp_path)
    assert (after[0] == before[0], after[1] > before[1]) == (True, True)


@pytest.mark.usefixtures("no_warming")
def test_an_interrupted_sweep_continues_within_its_point(
    sweep: RunGrid, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    grid = "method=none,ngram max_num_seqs=2"
    whole = sweep(grid, run_dir=tmp_path / "whole", defaults=SEEDED).document
    assert whole is not None
    with monkeypatch.context() as patch:
        stop_after(patch, 60)
        outcome = sweep(grid, defaults=SEEDED)
    assert (outcome.status, outcome.document) == (ExitStatus.INTERRUPTED, None)
    assert outcome.sentences == ("interrupted behind 1 of 2 points: run the same command again to continue",)
    first, second = run_dirs(tmp_path)
    before, part = (first / "responses.jsonl").stat().st_mtime_ns, responses(second)
    assert 0 < len(part) < len(ROWS)
    assert not (tmp_path / "sweep" / "sweep.json").exists()
    outcome = sweep(grid, defaults=SEEDED)
    assert outcome.status is ExitStatus.DONE
    assert (first / "responses.jsonl").stat().st_mtime_ns == before
    assert without_time(responses(second)) == without_time(responses(Path(whole["points"][1]["run_dir"])))
    assert outcome.document is not None
    points = outcome.document["points"]
    assert points[1]["acceptance"] == whole["points"][1]["acceptance"]
    assert [point["was_interrupted"] for point in points] == [False, True]
    assert (points[0]["speedup"], points[1]["speedup"]) == (1.0, None)
    assert outcome.document["fastest"] == points[0]["point"]
    for path in second.iterdir():
        path.unlink()
    outcome = sweep(grid, defaults=SEEDED)
    assert outcome.document is not None
    assert outcome.document["points"][1]["speedup"] is not None


@pytest.mark.usefixtures("no_warming")
def test_a_directory_of_another_sweep_is_refused(sweep: RunGrid, rows_path: Path, tmp_path: Path) -> None:
    sweep("method=ngram k=2")
    before = times_of(tmp_path)
    with pytest.raises(UsageError, match=r"--grid was .*k=2.*, now .*k=3"):
        sweep("method=ngram k=3")
    with pytest.raises(UsageError, match=r"--temperature was null, now 0\.8"):
        sweep("method=ngram k=2", defaults=SEEDED)
    with pytest.raises(UsageError, match=r"holds a run, not a sweep: give another --run-dir$"):
        sweep("method=ngram k=2", run_dir=run_dirs(tmp_path)[0])
    rows_path.write_text(rows_path.read_text() + json.dumps({"prompt": "more"}) + "\n")
    with pytest.raises(UsageError, match="the input's size was"):
        sweep("method=ngram k=2")
    assert times_of(tmp_path) == before


@pytest.mark.usefixtures("no_warming")
def test_overwriting_leaves_nothing_of_the_earlier_sweep(sweep: RunGrid, tmp_path: Path) -> None:
    sweep("method=none,ngram k=2 max_num_seqs=1")
    kept = tmp_path / "sweep" / "mine.txt"
    kept.write_text("mine")
    outcome = sweep("method=ngram k=2,3", overwrite=True)
    assert [path.name for path in run_dirs(tmp_path)] == ["001-method=ngram-k=2", "002-method=ngram-k=3"]
    assert kept.read_text() == "mine"
    assert outcome.status is ExitStatus.DONE
    before = times_of(tmp_path)
    sweep("method=ngram k=2,3", overwrite=True)
    assert all(late > early for early, late in zip(before, times_of(tmp_path), strict=True))


@pytest.mark.usefixtures("no_warming")
def test_an_interrupted_overwrite_does_not_take_old_runs_for_new(
    sweep: RunGrid, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sweep("method=none,ngram")
    before = times_of(tmp_path)
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        assert sweep("method=none,ngram", overwrite=True).status is ExitStatus.INTERRUPTED
    assert sweep("method=none,ngram").status is ExitStatus.DONE
    assert all(late > early for early, late in zip(before, times_of(tmp_path), strict=True))


@pytest.mark.usefixtures("no_warming")
def test_a_point_that_cannot_run_does_not_end_the_sweep(sweep: RunGrid, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.jsonl"
    earlier.write_text("nothing that a run writes\nat all\n")
    grid = f"method=recall,ngram recall_path={earlier}"
    outcome = sweep(grid)
    assert outcome.status is ExitStatus.FAILURES
    assert outcome.document is not None
    failed, served = outcome.document["points"]
    assert "earlier.jsonl" in failed["error"]
    assert (failed["throughput"], failed["speedup"], served["speedup"]) == (None, None, None)
    assert served["exit_status"] == 0
    assert outcome.document["fastest"] == "method=ngram"
    assert any("could not run" in sentence for sentence in outcome.sentences)
    before = (run_dirs(tmp_path)[-1] / "responses.jsonl").stat().st_mtime_ns
    earlier.write_text("")
    outcome = sweep(grid)
    assert outcome.status is ExitStatus.DONE
    assert (run_dirs(tmp_path)[-1] / "responses.jsonl").stat().st_mtime_ns == before


def test_a_changed_answer_is_found_and_named(sweep: RunGrid, tmp_path: Path) -> None:
    sweep("method=none,ngram k=1,3", level=Level.DETAILED)
    path = run_dirs(tmp_path)[2] / "responses.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    choice = records[5]["response"]["body"]["choices"][0]
    choice["text"] = choice["text"][:4] + "\N{SNOWMAN}" + choice["text"][5:]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    outcome = sweep("method=none,ngram k=1,3", level=Level.DETAILED)
    assert outcome.status is ExitStatus.FAILURES
    assert outcome.document is not None
    first = outcome.document["outputs"]["first_difference"]
    assert (first["a"], first["b"]) == ("method=none", "method=ngram k=3")
    assert (first["custom_id"], first["what"], first["character"]) == ("r5", "text", 4)
    assert outcome.document["outputs"]["points"]["method=ngram k=3"]["num_different"] == 1
    assert "first for r5 at choice 0, character 4" in outcome.sentences[0]
    assert "Outputs differ" in (tmp_path / "sweep" / "sweep.md").read_text()


@pytest.mark.usefixtures("no_warming")
def test_lines_that_cannot_be_served_fail_alike(sweep: RunGrid, rows_path: Path) -> None:
    rows_path.write_text(rows_path.read_text() + json.dumps({"prompt": "x", "temperature": 9}) + "\n")
    outcome = sweep("method=none,ngram")
    assert outcome.status is ExitStatus.FAILURES
    assert outcome.document is not None
    assert outcome.document["outputs"]["is_identical"]
    assert [point["requests"]["num_failed"] for point in outcome.document["points"]] == [1, 1]
    assert outcome.sentences[0].startswith("method=none and 1 more ended with status 1: 1 of its lines have an error")


@pytest.mark.usefixtures("no_warming")
def test_a_damaged_input_is_told(sweep: RunGrid, rows_path: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(gzip.compress(rows_path.read_bytes())[:-20])
    for _ in range(2):
        outcome = sweep("method=none,ngram", input=str(damaged))
        assert outcome.status is ExitStatus.FAILURES
        assert "damaged.jsonl.gz cannot be read further" in outcome.sentences[0]


@pytest.mark.usefixtures("no_warming")
def test_a_requirement_holds_at_every_point_that_drafts(sweep: RunGrid) -> None:
    wanted = parse_requirements(["acceptance_length>=1", "category:a:position[0]>=1.1", "mean:acceptance_rate>=0"])
    outcome = sweep("method=none,ngram k=1,3", requirements=wanted)
    assert outcome.status is ExitStatus.FAILURES
    assert outcome.document is not None
    judged = outcome.document["requirements"]
    assert [one["holds"] for one in judged] == [True, False, True] * 2
    assert judged[4]["require"] == "category:a:position[0]>=1.1 (method=ngram k=3)"
    expected = outcome.document["points"][2]["categories"]["a"]["per_position"][0]["marginal_rate"]
    assert judged[4]["value"] == expected


def test_what_cannot_start_writes_nothing(sweep: RunGrid, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for settings, sentence in (
        ({"input": "-"}, "a stream cannot be: give a file"),
        ({"input": str(pipe)}, "a stream cannot be: give a file"),
        ({"input": str(tmp_path / "missing.jsonl")}, "missing.jsonl"),
        ({"model": str(tmp_path / "nowhere")}, "nowhere"),
    ):
        with pytest.raises(UsageError, match=sentence):
            sweep("method=none", **settings)
    with pytest.raises(UsageError, match=r"old\.jsonl"):
        sweep(f"method=recall recall_path={tmp_path}/old.jsonl")
    with pytest.raises(UsageError, match=r"--grid: draft_model .*/small: there is no such directory"):
        sweep(f"method=draft_model draft_model={tmp_path}/small")
    assert not (tmp_path / "sweep").exists()


def test_an_empty_input_is_told_of_and_no_failure(sweep: RunGrid, rows_path: Path, no_warming: None) -> None:
    rows_path.write_text("")
    outcome = sweep("method=none")
    assert outcome.status is ExitStatus.DONE
    assert outcome.sentences[0] == f"{rows_path} holds no rows"
