"""A damaged manifest is told of by whoever reads the run."""

from pathlib import Path

import pytest

from batchspec.files.manifest import damaged_manifests
from tests.cli.calling import call
from tests.ingest.logs import ORACLE

RESPONSES = ORACLE / "ngram_k3_n1-3" / "greedy.responses.jsonl"


def damaged_run(directory: Path) -> Path:
    directory.mkdir()
    (directory / "responses.jsonl").write_bytes(RESPONSES.read_bytes())
    (directory / "manifest.json").write_text("{")
    return directory


@pytest.mark.parametrize("command", ["report", "compare"])
def test_report_and_compare_go_on_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run = damaged_run(tmp_path / "run")
    others = [str(RESPONSES)] if command == "compare" else []
    status, out, err = call(monkeypatch, capsys, command, *others, str(run))
    assert (status, bool(out)) == (0, True)
    assert f"batchspec: {run}/manifest.json is not a manifest that batchspec wrote: it is damaged: " in err
    assert "--overwrite" not in err


def test_replay_refuses_and_names_no_option_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = call(monkeypatch, capsys, "replay", str(damaged_run(tmp_path / "run")))
    assert (status, "it is damaged: " in err, "--overwrite" in err) == (2, True, False)


def test_what_has_no_manifest_is_passed_over(tmp_path: Path) -> None:
    run = damaged_run(tmp_path / "run")
    (run / "manifest.json").unlink()
    assert damaged_manifests([str(run), "-", "s3://bucket/log.jsonl", "x" * 5000, str(RESPONSES)]) == []
