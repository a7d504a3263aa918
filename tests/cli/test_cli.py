"""The command line: help at once, mistakes as one sentence with exit status 2, data on stdout, progress on stderr."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from batchspec.cli import app

from .calling import call

ROOT = Path(__file__).parent.parent.parent
COMMANDS = [command.name for command in app.registered_commands]


def python(*code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *code], capture_output=True, text=True, check=False, timeout=300)


def test_help_imports_nothing_heavy() -> None:
    heavy = ("torch", "transformers", "numba", "pyarrow", "pandas")
    code = f"import sys; from batchspec.cli import app; print([m for m in {heavy!r} if m in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


def test_help_answers_at_once() -> None:
    """The best of five: other processes may be busy, the command may not."""
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        assert python("-m", "batchspec", "--help").returncode == 0
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.5


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_and_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    status, out, _ = call(monkeypatch, capsys, command, "--help")
    assert status == 0
    assert f"Example: batchspec {command} " in out
    assert "--json" in out
    assert f"batchspec {command} " in (ROOT / "README.md").read_text()


MISTAKES: list[tuple[list[str], str]] = [
    (["run"], "missing"),
    (["walk"], "walk"),
    (["run", "x.jsonl", "--colour"], "--colour"),
    (["run", "missing.jsonl"], "missing.jsonl"),
    (["run", ".."], "is a directory that holds more than part files"),
    (["run", "in.jsonl", "--level", "most"], "'most' is not one of"),
    (["run", "in.jsonl", "--max-num-seqs", "0"], "--max-num-seqs must be at least 1"),
    (["run", "in.jsonl", "--max-num-batched-tokens", "-3"], "--max-num-batched-tokens"),
    (["run", "in.jsonl", "--max-model-len", "1"], "--max-model-len"),
    (["run", "in.jsonl", "--temperature", "3"], "--temperature must be at least 0 and at most 2, not 3.0"),
    (["run", "in.jsonl", "--temperature", "nan"], "--temperature"),
    (["run", "in.jsonl", "--top-p", "0"], "--top-p must be above 0"),
    (["run", "in.jsonl", "--repetition-penalty", "0"], "--repetition-penalty must be above 0"),
    (["run", "in.jsonl", "--generation-config", "nowhere"], "'nowhere' is neither auto, openai nor a directory"),
    (["run", "in.jsonl", "--max-tokens", "0"], "--max-tokens must be at least 1"),
    (["run", "in.jsonl", "--kv-cache-memory", "much"], "512MiB"),
    (["run", "in.jsonl", "--seed", "9" * 24], "--seed must fit in 64 bits"),
    (["run", "in.jsonl", "--max-num-seqs", "9" * 24], "--max-num-seqs must be at most"),
    (["run", "in.jsonl", "--metrics-port", "-5"], "--metrics-port must be from 1 to 65535"),
    (["run", "in.jsonl", "--num-speculative-tokens", "1000"], "from 1 to 256, not 1000"),
    (["run", "in.jsonl", "--method", "magic"], "choose one of none, ngram"),
    (["run", "in.jsonl", "--num-speculative-tokens", "0"], "--num-speculative-tokens"),
    (["run", "in.jsonl", "--prompt-lookup-min", "4", "--prompt-lookup-max", "2"], "above"),
    (["run", "in.jsonl", "--method", "none", "--level", "detailed"], "--method none"),
    (["run", "in.jsonl", "--method", "none", "--prompt-lookup-max", "2"], "no effect"),
    (["run", "in.jsonl", "--method", "none", "--forced-tokens"], "no effect"),
    (["run", "in.jsonl", "--method", "forced", "--prompt-lookup-max", "2"], "means nothing to the method forced"),
    (["run", "in.jsonl", "--speculative-config", "{"], "not JSON"),
    (["run", "in.jsonl", "--speculative-config", "[]"], "JSON object"),
    (["run", "in.jsonl", "--speculative-config", '{"k": 3}'], "known keys are method, num_speculative_tokens"),
    (["run", "in.jsonl", "--speculative-config", "{}", "--method", "ngram"], "give one of them"),
    (["run", "in.jsonl", "--output", "out.csv"], ".parquet"),
    (["run", "in.jsonl", "--output", "in.jsonl"], "in.jsonl is the input"),
    (["run", "in.jsonl", "--model", "./nowhere"], "./nowhere"),
    (["run", "in.jsonl", "--device", "tpu"], "auto, cpu, cuda"),
    (["run", "in.jsonl", "--dtype", "int3"], "float32"),
    (["run", "in.jsonl", "--max-model-len", "999999"], "beyond the model's context"),
    (["run", "in.jsonl", "--kv-cache-memory", "1KiB"], "--kv-cache-memory to at least"),
]


@pytest.mark.parametrize(("args", "expected"), MISTAKES, ids=[" ".join(args) for args, _ in MISTAKES])
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"prompt": "a"}\n')
    status, out, err = call(monkeypatch, capsys, *args)
    assert (status, out) == (2, "")
    assert expected in err
    assert err.startswith("batchspec: ")
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_json_goes_to_stdout_and_progress_to_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"prompt": "a b a b", "id": 1}\nnot json\n')
    status, out, err = call(monkeypatch, capsys, "run", "in.jsonl", "--level", "summary", "--json", "--max-tokens", "9")
    document: dict[str, Any] = json.loads(out)
    assert status == 1
    assert document["requests"]["num_failed"] == 1
    assert document["reconciliation"]["is_exact"]
    assert "2/2 requests" in err
    assert "1 line has an error record" in err
    assert (tmp_path / "reports" / "in" / "responses.jsonl").exists()
    status, out, err = call(monkeypatch, capsys, "run", "in.jsonl", "--level", "summary", "--json", "--max-tokens", "9")
    assert (status, json.loads(out)) == (1, document)
    assert "finished, nothing was done" in err


def test_tables_go_to_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"prompt": "a b a b a"}\n')
    status, out, _ = call(monkeypatch, capsys, "run", "in.jsonl", "--level", "detailed", "--temperature", "0")
    assert status == 0
    for word in ("Acceptance", "marginal", "conditional", "histogram", "Reconciliation", "Prometheus"):
        assert word in out


def test_a_full_disk_behind_stdout_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"prompt": "a", "max_tokens": 2}\n')
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "batchspec", "run", "in.jsonl"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert "standard output cannot be written" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert (tmp_path / "reports" / "in" / "report.json").exists()
