"""The first token's way and a command's peak of memory, with stand-ins for the command."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from batchspec.bench import start
from batchspec.bench.job import Job
from batchspec.bench.settings import BenchSettings
from batchspec.bench.subject import Subject
from batchspec.errors import UsageError

COMMAND = """
import pathlib, sys
block = b"x" * 80_000_000
run_dir = pathlib.Path(sys.argv[sys.argv.index("--run-dir") + 1])
run_dir.mkdir(exist_ok=True)
(run_dir / "responses.jsonl").write_text("{}")
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "command.py"
    path.write_text(COMMAND)
    monkeypatch.setattr(start, "_command", lambda settings: [sys.executable, str(path)])
    return path


def test_the_first_record_is_waited_for(
    stand_in: Path, subject: Subject, settings: BenchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "_steps", lambda settings, row: {"imports": 1.0, "model": 2.0})
    said: list[str] = []
    found = start.measure_start(subject, settings, say=said.append)
    assert 0 < found["first_record_seconds"]["min"] <= found["first_record_seconds"]["median"]
    assert found["steps_seconds"]["model"] == {"median": 2.0, "min": 2.0, "max": 2.0}
    assert len(said) == settings.rounds


def test_the_peak_is_the_commands_own(stand_in: Path, subject: Subject, settings: BenchSettings) -> None:
    """The test's process is several times as large as the command."""
    job = Job(prompts=[[1, 2]], max_tokens=4, max_num_seqs=2)
    found = start.measure_memory(subject, settings, job)
    assert 80_000_000 < found["peak_bytes"] < 140_000_000
    assert found["kv_cache_bytes"] == 2 * 16 * subject.loaded.bytes_per_token
    assert found["other_bytes"] == found["peak_bytes"] - found["weight_bytes"] - found["kv_cache_bytes"]


def test_a_command_that_fails_is_a_sentence(stand_in: Path, subject: Subject, settings: BenchSettings) -> None:
    stand_in.write_text("import sys; sys.exit('the disk is full')")
    with pytest.raises(UsageError, match="exit status 1: the disk is full"):
        start.measure_start(subject, replace(settings, rounds=1), say=lambda _: None)


def test_the_command_is_given_the_model_and_the_drafter(settings: BenchSettings) -> None:
    command = start._command(replace(settings, model="some-model"))
    assert command[1:4] == ["-m", "batchspec", "run"]
    assert command[command.index("--model") + 1] == "some-model"
    assert json.loads(command[command.index("--speculative-config") + 1])["num_speculative_tokens"] == 3
