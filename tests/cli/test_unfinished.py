"""Half a run is not judged as a whole one: every command that reads responses says so, and no gate passes."""

from pathlib import Path

import orjson
import pytest

from tests.ingest.logs import ORACLE

from .calling import call

GATE = ("--require", "acceptance_length>=0")


@pytest.fixture(params=["finished", "interrupted"])
def is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> bool:
    """Make a run in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r").mkdir()
    manifest = {"status": request.param, "batchspec_version": "1", "parameters": {}, "model": {}, "dataset": {}}
    (tmp_path / "r" / "manifest.json").write_bytes(orjson.dumps(manifest))
    rows = (ORACLE / "ngram_k3_n1-3" / "greedy.responses.jsonl").read_bytes()
    (tmp_path / "r" / "responses.jsonl").write_bytes(rows)
    return bool(request.param == "finished")


@pytest.mark.parametrize(
    ("args", "has_gate"),
    [
        (("report", "r"), True),
        (("report", "*/responses.jsonl"), True),
        (("compare", "r", "r"), True),
        (("replay", "r", "--num-speculative-tokens", "1"), True),
        (("convert", "r", "--to", "aiperf", "-o", "o.jsonl"), False),
    ],
    ids=["report", "pattern", "compare", "replay", "convert"],
)
def test_half_a_run_is_said_to_be_one(
    is_finished: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: tuple[str, ...],
    has_gate: bool,
) -> None:
    status, _, err = call(monkeypatch, capsys, *args)
    assert status == 0
    assert err.count(" is unfinished, 24 rows so far: run the same command again\n") == (not is_finished)
    if has_gate:
        status, _, err = call(monkeypatch, capsys, *args, *GATE)
        assert status == (not is_finished)
        assert ("is unfinished" in err) == (not is_finished)
