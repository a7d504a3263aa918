"""``batchspec reconcile`` as it is typed, on a run of our own and on a server's files."""

import json
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig
from batchspec.job.run import run_job
from batchspec.job.settings import JobSettings
from batchspec.settings import EngineSettings
from tests.cli.calling import call

from .scraping import ORACLE, exposition

Capture = pytest.CaptureFixture[str]
LINES: list[dict[str, Any]] = [
    {"id": "one", "prompt": "a b c a b c a b c", "max_tokens": 60, "temperature": 0, "ignore_eos": True},
    {"id": "two samples", "prompt": "a b a b a b", "n": 2, "max_tokens": 60, "temperature": 0, "ignore_eos": True},
    {
        "id": "two prompts",
        "prompt": ["x y x y x y", "k l k l k l"],
        "max_tokens": 60,
        "temperature": 0,
        "ignore_eos": True,
    },
    {"id": "bad", "prompt": 3},
]
EDGES = ORACLE / "ngram_k3_n1-3"


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the embedded model with everything that carries no metrics."""
    directory = tmp_path_factory.mktemp("run")
    (directory / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    speculative = SpeculativeConfig.from_mapping({"method": "ngram", "num_speculative_tokens": 3})
    run_job(
        JobSettings(
            input=str(directory / "in.jsonl"),
            run_dir=directory / "run",
            engine=EngineSettings(speculative=speculative, level=Level.SUMMARY),
        )
    )
    return directory / "run"


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be spoilt."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def test_a_run_directory_needs_nothing_else(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    status, out, err = call(monkeypatch, capsys, "reconcile", str(run))
    assert (status, err) == (0, "")
    assert "Reconciled: all 6 totals agree exactly, zero differences." in out
    status, out, _ = call(monkeypatch, capsys, "reconcile", str(run), "--json")
    document = json.loads(out)
    steps = document["rows"][0]
    assert set(steps["unreported"]) >= {"n > 1", "several prompts"}
    assert all(steps["unreported"][cause] > 0 for cause in ("n > 1", "several prompts"))
    assert steps["reported"] + sum(steps["unreported"].values()) == steps["counters"]
    assert document["responses"]["without_metrics"]["error"]["named"] == ["bad"]


def test_the_responses_alone_are_explained(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    args = ("reconcile", str(run / "responses.jsonl"), "--after", str(run / "metrics.prom"))
    status, out, _ = call(monkeypatch, capsys, *args)
    assert status == 0
    assert "Explained: " in out
    assert "two samples, two prompts" in out


def test_a_counter_of_a_run_that_is_wrong_is_not_excused(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The unreported counts of a run are known exactly, so that its rows without metrics explain nothing more."""
    path = run / "metrics.prom"
    lines = path.read_text().splitlines()
    (place,) = [i for i, line in enumerate(lines) if line.startswith("vllm:spec_decode_num_draft_tokens_total{")]
    series, value = lines[place].rsplit(" ", 1)
    lines[place] = f"{series} {float(value) - 1}"
    path.write_text("\n".join(lines) + "\n")
    status, out, _ = call(monkeypatch, capsys, "reconcile", str(run))
    assert status == 1
    assert "NOT reconciled: 1 of 6 totals differ (drafted)." in out
    status, out, _ = call(monkeypatch, capsys, "reconcile", str(run / "responses.jsonl"), "--after", str(path))
    assert status == 0


def test_a_run_without_its_report_is_read_as_any_other_responses(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (run / "report.json").unlink()
    status, out, _ = call(monkeypatch, capsys, "reconcile", str(run))
    assert status == 0
    assert "Explained: " in out
    (run / "metrics.prom").unlink()
    status, out, err = call(monkeypatch, capsys, "reconcile", str(run))
    assert (status, out) == (2, "")
    assert "has no metrics.prom: give --after" in err


def test_a_report_that_is_none_is_one_sentence(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    (run / "report.json").write_text('{"reconciliation": {"rows": [3]}}')
    status, _, err = call(monkeypatch, capsys, "reconcile", str(run))
    assert status == 2
    assert "report.json is not a report of batchspec" in err
    assert err.count("\n") == 1


def test_a_servers_files(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    args = [
        "reconcile",
        str(EDGES / "edges.responses.jsonl"),
        *("--before", str(EDGES / "edges.before.prom"), "--after", str(EDGES / "edges.after.prom")),
    ]
    status, out, err = call(monkeypatch, capsys, *args)
    assert (status, err) == (0, "")
    for text in (
        "Without metrics, no metrics: 1 (stopstr)",
        "Sequences: 17 in the responses, 17 ended between the scrapes",
        "steps                            77       155         -78",
    ):
        assert text in out
    args[1] = str(EDGES / "greedy.responses.jsonl")
    status, out, _ = call(monkeypatch, capsys, *args)
    assert status == 1
    assert "NOT reconciled" in out


def test_several_engines_have_a_column_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    text = exposition(steps=0, drafted=0, accepted=[0], engine="0") + exposition(
        steps=0, drafted=0, accepted=[0], engine="1"
    )
    (tmp_path / "after.prom").write_text(text)
    (tmp_path / "r.jsonl").write_bytes(orjson.dumps({"custom_id": "a", "choices": [{}], "usage": {}}) + b"\n")
    args = ("reconcile", str(tmp_path / "r.jsonl"), "--after", str(tmp_path / "after.prom"))
    status, out, _ = call(monkeypatch, capsys, *args)
    assert status == 0
    assert "engine  engine" in out
    assert "0       1  counters" in out


MISTAKES: list[tuple[list[str], str]] = [
    (["r.jsonl"], "--after is missing: give the scrape"),
    (["."], "has no metrics.prom"),
    ([], "missing argument"),
    (["r.jsonl", "--after", "nowhere.prom"], "scrape nowhere.prom cannot be read"),
    (["r.jsonl", "--after", "r.jsonl"], "not in Prometheus' text format"),
    (["missing.jsonl", "--after", str(EDGES / "edges.after.prom")], "missing.jsonl cannot be read"),
    (
        ["r.jsonl", "--after", str(EDGES / "edges.before.prom"), "--before", str(EDGES / "edges.after.prom")],
        "fell from 1449",
    ),
]


@pytest.mark.parametrize(("args", "expected"), MISTAKES, ids=[expected for _, expected in MISTAKES])
def test_a_mistake_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, args: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.jsonl").write_text('{"choices": []}\n')
    status, out, err = call(monkeypatch, capsys, "reconcile", *args)
    assert (status, out) == (2, "")
    assert err.startswith("batchspec: ")
    assert err.count("\n") == 1
    assert expected in err


def test_responses_of_a_run_without_a_scrape_lead_to_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "metrics.prom").touch()
    status, _, err = call(monkeypatch, capsys, "reconcile", str(tmp_path / "responses.jsonl"))
    assert status == 2
    assert err.endswith(f", or give the run directory {tmp_path}\n")
