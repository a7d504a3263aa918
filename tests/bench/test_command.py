"""``batchspec bench`` from the command line: what it refuses, what it prints and what it leaves behind."""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from batchspec.bench import suite
from batchspec.bench.interruption import Interruption
from batchspec.bench.settings import DRAFTERS, BenchSettings, default_run_dir
from batchspec.cli import main
from batchspec.errors import Terminated

EMPTY = {
    "model": {"name": "m", "dtype": "float32", "device": "cpu", "implementation": "batchspec"},
    "machine": {
        "processor": "p",
        "num_cores": 1,
        "num_threads": 1,
        "capability": "c",
        "torch": "t",
        "copy": {"bytes_per_second": {"median": 1e9, "min": 1e9, "max": 1e9}},
    },
    "prompts": {"num_prompts": 1, "input": "i", "num_left_out": 0, "num_cut": 0, "num_plain": 0},
    "settings": {"speculative": {"method": "none"}, "rounds": 1},
    **dict.fromkeys(("interrupted", "steps", "overhead", "throughput", "prefix", "start", "drafters")),
}


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["batchspec", "bench", *args])
    with pytest.raises(SystemExit) as exit_:
        main()
    captured = capsys.readouterr()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code, captured.out, captured.err


MISTAKES: list[tuple[list[str], str]] = [
    (["--max-num-seqs", "1,two"], "--max-num-seqs must be numbers of at least 1"),
    (["--rows", "0"], "--rows must be numbers of at least 1"),
    (["--context", ""], "--context must be numbers"),
    (["--only", "everything"], "--only 'everything' is not known; choose from steps, overhead, throughput"),
    (["--drafters", "ngram,medusa"], "--drafters 'medusa' is not known; choose from none, ngram, suffix"),
    (["--rounds", "0"], "--rounds must be at least 1, not 0"),
    (["--max-tokens", "0"], "--max-tokens must be at least 1"),
    (["--device", "tpu"], "--device 'tpu' is not known"),
    (["--dtype", "int3"], "--dtype 'int3' is not known"),
    (["--peer", "llama.cpp"], "--peer 'llama.cpp' is not known; choose from transformers, openvino=PYTHON"),
    (["--peer", "transformers=python3"], "give no interpreter"),
    (["--peer", "vllm"], "write vllm=PYTHON"),
    (["--peer", "vllm=./nowhere/python"], "'./nowhere/python' cannot be run"),
    (["--peer-model", "openvino=."], "names no peer"),
    (["--peer-dtype", "vllm=float32"], "names no peer"),
    (["--peer-dtype", "vllm"], "must be NAME=DTYPE with one of float32"),
    (["--peer-model", "openvino"], "write it like openvino=DIR"),
    (["--run-dir", "old"], "old holds a benchmark already: use --overwrite"),
    (["--method", "none", "--prompt-lookup-max", "2"], "no effect"),
]


@pytest.mark.parametrize(("args", "expected"), MISTAKES, ids=[" ".join(args) for args, _ in MISTAKES])
def test_a_mistake_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"prompt": "a"}\n')
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "bench.json").write_text("{}")
    status, out, err = call(monkeypatch, capsys, "in.jsonl", *args)
    assert (status, out) == (2, "")
    assert expected in err
    assert err.startswith("batchspec: ")
    assert err.count("\n") == 1


def test_drafters_are_not_compared_on_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = call(monkeypatch, capsys, "-", "--only", "drafters")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "standard input cannot: give a file" in err


def test_an_input_that_is_not_there_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = call(monkeypatch, capsys)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "datasets/quickstart.jsonl cannot be read" in err


@pytest.mark.parametrize("as_json", [True, False])
def test_measurements_go_to_stdout_and_into_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    asked: list[BenchSettings] = []

    def measure(settings: BenchSettings, *, say: Callable[[str], None], **_: Any) -> dict[str, Any]:
        asked.append(settings)
        say("measuring")
        return EMPTY

    monkeypatch.setattr(suite, "run_bench", measure)
    directory = tmp_path / "bench"
    flags = ["--json"] if as_json else []
    arguments = ["in.jsonl", "--run-dir", str(directory), "--max-num-seqs", "64,4", "--only", "start"]
    status, out, err = call(monkeypatch, capsys, *arguments, *flags)
    assert status == 0
    assert err.splitlines() == ["batchspec: measuring", f"batchspec: measurements are in {directory}"]
    assert (json.loads(out) == EMPTY) if as_json else ("Copying memory: 1.0" in out)
    assert json.loads((directory / "bench.json").read_text()) == EMPTY
    assert (directory / "bench.md").read_text().startswith("# Benchmark")
    assert asked[0].max_num_seqs == (4, 64)
    assert [str(part) for part in asked[0].parts] == ["start"]
    assert asked[0].drafters == DRAFTERS


def test_an_interrupted_benchmark_writes_what_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(settings: BenchSettings, *, interruption: Interruption, **_: Any) -> dict[str, Any]:
        interruption.error, interruption.num_rounds = Terminated(), 3
        return EMPTY | {"interrupted": {"num_rounds": 3}}

    monkeypatch.setattr(suite, "run_bench", measure)
    status, out, err = call(monkeypatch, capsys, "in.jsonl", "--run-dir", str(tmp_path / "bench"))
    assert status == 143
    assert "INTERRUPTED: the last numbers are those of 3 rounds, and what would follow is missing." in out
    assert err.splitlines()[-1] == "batchspec: interrupted: what was complete is kept"
    assert json.loads((tmp_path / "bench" / "bench.json").read_text())["interrupted"] == {"num_rounds": 3}


def test_drafters_are_compared_when_asked_for_with_none_among_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[BenchSettings] = []

    def measure(settings: BenchSettings, *, say: Callable[[str], None], **_: Any) -> dict[str, Any]:
        asked.append(settings)
        return EMPTY

    monkeypatch.setattr(suite, "run_bench", measure)
    directory = str(tmp_path / "bench")
    flags = ["--drafters", "suffix, ngram,suffix", "--draft-model", "small", "--num-speculative-tokens", "5"]
    call(monkeypatch, capsys, "in.jsonl", "--run-dir", directory)
    call(monkeypatch, capsys, "in.jsonl", "--run-dir", directory, "--overwrite", "--only", "drafters", *flags)
    assert [str(part) for part in asked[0].parts] == ["steps", "overhead", "throughput", "prefix", "start"]
    assert [str(part) for part in asked[1].parts] == ["drafters"]
    assert asked[1].drafters == ("none", "suffix", "ngram")
    assert (asked[1].draft_model, asked[1].num_speculative_tokens) == ("small", 5)


def test_the_directory_is_named_for_model_and_time() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5)
    assert default_run_dir(None, now=now) == Path("reports/bench-embedded-2026-01-02-030405")
    assert default_run_dir("models/tiny.gguf", now=now).name.startswith("bench-tiny-2026")
