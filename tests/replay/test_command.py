"""The command: tables and JSON, logs of all kinds, mistakes as sentences, and no torch."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.cli import main
from batchspec.drafting import SpeculativeConfig
from batchspec.job.run import run_job
from batchspec.job.settings import JobSettings
from batchspec.settings import EngineSettings
from tests.core.runs import spec_of

from .logs import write_log

ORACLE = Path(__file__).parents[1] / "data" / "oracle"
LOG = ORACLE / "ngram_k3_n1-3" / "greedy.responses.jsonl"


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["batchspec", "replay", *args])
    with pytest.raises(SystemExit) as exit_:
        main()
    captured = capsys.readouterr()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code, captured.out, captured.err


def document_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    status, out, err = call(monkeypatch, capsys, *args, "--json")
    assert (status, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of our own with more than two generations of requests, suffix drafts and detailed metrics."""
    directory = tmp_path_factory.mktemp("run")
    rows = [{"prompt": f"{i % 7} a b a b", "category": "ab"[i % 2], "max_tokens": 24, "id": i} for i in range(150)]
    settings = JobSettings(
        input=str(write_log(directory / "input.jsonl", rows)),
        run_dir=directory / "run",
        engine=EngineSettings(
            max_num_seqs=66,
            max_model_len=64,
            level=Level.DETAILED,
            speculative=SpeculativeConfig.from_mapping({"method": "suffix", "num_speculative_tokens": 4}),
        ),
    )
    assert run_job(settings).status == 0
    return directory / "run"


def test_a_run_directory_is_replayed_on_its_own_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run_dir: Path
) -> None:
    """Its own settings give its own numbers, generations as large as its batch included."""
    document = document_of(
        monkeypatch, capsys, str(run_dir), "--method", "suffix,ngram", "--num-speculative-tokens", "4"
    )
    (job,) = document["replayed"]["jobs"]
    assert job == {
        "path": str(run_dir),
        "max_num_seqs": 66,
        "max_num_batched_tokens": 2048,
        "max_model_len": 64,
        "has_indices": True,
    }
    records = [json.loads(line) for line in (run_dir / "responses.jsonl").read_text().splitlines()]
    own = document["all"]["cells"][0]["pooled"]
    for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "num_decode_steps"):
        assert own[name] == sum(spec_of(record)[name] for record in records), name
    assert list(document["categories"]) == ["a", "b"]
    assert document["all"]["best"]["criterion"] == "tokens_per_decode_step"


def test_recall_of_a_run_for_itself_is_refused_and_of_a_copy_all_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run_dir: Path, tmp_path: Path
) -> None:
    options = ("--method", "recall", "--num-speculative-tokens", "3", "--recall-path")
    status, _, err = call(monkeypatch, capsys, str(run_dir), *options, str(run_dir / "responses.jsonl"))
    assert status == 2
    assert "is the log that is replayed" in err
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes((run_dir / "responses.jsonl").read_bytes())
    (cell,) = document_of(monkeypatch, capsys, str(run_dir), *options, str(copy))["all"]["cells"]
    assert cell["pooled"]["draft_acceptance_rate"] == 1.0
    records = [json.loads(line) for line in copy.read_text().splitlines()]
    for record in records:
        record["response"]["body"]["metrics"] = None
    write_log(copy, records)
    status, _, err = call(monkeypatch, capsys, str(run_dir), *options, str(copy))
    assert status == 2
    assert "answers without token ids: give --tokenizer" in err
    assert err.count("\n") == 1


def test_standard_input_and_several_logs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    alone = document_of(monkeypatch, capsys, str(LOG))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.read_bytes())))
    piped = document_of(monkeypatch, capsys, "-")
    assert piped["all"] == alone["all"]
    other = ORACLE / "none" / "greedy.responses.jsonl"
    both = document_of(monkeypatch, capsys, str(LOG), str(other), "--method", "ngram,suffix")
    assert both["replayed"]["num_requests"] == 48
    assert [job["path"] for job in both["replayed"]["jobs"]] == [str(LOG), str(other)]
    for cell, half in zip(both["all"]["cells"], alone["all"]["cells"], strict=False):
        assert cell["pooled"]["num_spec_steps"] == 2 * half["pooled"]["num_spec_steps"]


def test_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [json.loads(line) | {"category": f"c{i % 2}"} for i, line in enumerate(LOG.read_text().splitlines())]
    log = write_log(tmp_path / "log.jsonl", [*rows, {"custom_id": "text", "choices": [{"text": "x"}]}])
    arguments = (str(log), "--method", "ngram,suffix", "--num-speculative-tokens", "1..3", "--cost", "0.1,0.001")
    status, out, _ = call(monkeypatch, capsys, *arguments, "--histogram")
    assert status == 0
    for words in (
        "Replayed: 24 requests with 24 outputs",
        "Left out, no token ids: 1 (text): run with --level detailed",
        "Replay, all requests",
        "Replay, category c1 (12 requests)",
        "does not tell every request's place",
        "could not learn from the rows that are left",
        "steps saved",
        "2,000 draws, seed 0",
        "step costs: 0.1 s + 0.001 s a row; batch of 64",
        "Best by predicted speed-up",
        "better by",
        "ngram, 1",
        "Steps by accepted draft tokens, suffix",
        "undecided, behind the end",
    ):
        assert words in " ".join(out.split()), words
    assert max(map(len, out.splitlines())) <= 100
    status, out, _ = call(monkeypatch, capsys, str(log), "--num-speculative-tokens", "2")
    assert "Best" not in out
    assert "Steps by accepted" not in out


def test_a_gate_has_to_hold_for_every_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (str(LOG), "--num-speculative-tokens", "1,3", "--json")
    status, out, err = call(monkeypatch, capsys, *arguments, "--require", "acceptance_length>=1.7")
    assert (status, err) == (0, "")
    assert [one["holds"] for one in json.loads(out)["requirements"]] == [True, True]
    status, out, err = call(
        monkeypatch,
        capsys,
        *arguments,
        "--require",
        "acceptance_length >= 2.7",
        "--require",
        "mean:acceptance_rate>0.5",
    )
    assert status == 1
    assert err.count("\n") == 1
    assert "requirement acceptance_length >= 2.7 (ngram, k 1) failed: the value is 1.73" in err
    for odd in ("category:x:acceptance_length>=1", "position[2]>=0.1"):
        status, _, err = call(monkeypatch, capsys, *arguments, "--require", odd)
        assert status == 1
        assert "the value is not known" in err
    status, _, err = call(monkeypatch, capsys, *arguments, "--require", "macro:acceptance_length>=1")
    assert status == 2
    assert "is not told by a replay" in err


MISTAKES: list[tuple[list[str], str]] = [
    ([], "missing"),
    (["nowhere.jsonl"], "nowhere.jsonl"),
    (["."], "without responses.jsonl"),
    (["log.jsonl", "log.jsonl"], "named twice"),
    (["log.jsonl", "--method", "auto"], "cannot be replayed"),
    (["log.jsonl", "--method", "draft_model"], "give a draft model of the target's vocabulary"),
    (["log.jsonl", "--draft-model", "x"], "means nothing to the method ngram"),
    (["log.jsonl", "--num-speculative-tokens", "8..1"], "like 1..8 or 1,3,5"),
    (["log.jsonl", "--method", "suffix", "--prompt-lookup-min", "2"], "means nothing to the method suffix"),
    (["log.jsonl", "--recall-path", "x"], "means nothing to the method ngram"),
    (["log.jsonl", "--method", "recall"], "--recall-path"),
    (["log.jsonl", "--method", "recall", "--recall-path", "nowhere"], "nowhere cannot be recalled"),
    (["log.jsonl", "--max-num-seqs", "0"], "--max-num-seqs must be from 1"),
    (["log.jsonl", "--max-model-len", "-1"], "--max-model-len must be from 1"),
    (["log.jsonl", "--cost", "much"], "two numbers of seconds"),
    (["log.jsonl", "--prompts", "log.jsonl"], "give --tokenizer"),
    (["log.jsonl", "--cost", "1"], "--cost 1 is a single number: give two numbers of seconds A,B"),
    (
        ["log.jsonl", "--tokenizer", "."],
        "give the directory of the model that wrote the texts, with its tokenizer.json",
    ),
    (["log.jsonl", "--require", "fast"], "is no requirement"),
    (["text.jsonl"], "no row can be replayed (no token ids: 1 rows; run with --level detailed"),
    (["empty.jsonl"], "no row can be replayed (there is none)"),
]


@pytest.mark.parametrize(("args", "expected"), MISTAKES, ids=[" ".join(args) for args, _ in MISTAKES])
def test_a_mistake_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(Path("log.jsonl"), LOG.read_text().splitlines()[:2])
    write_log(Path("text.jsonl"), [{"choices": [{"text": "x"}]}])
    write_log(Path("empty.jsonl"), [])
    status, out, err = call(monkeypatch, capsys, *args)
    assert (status, out) == (2, "")
    assert expected in err
    assert err.startswith("batchspec: ")
    assert err.count("\n") == 1


def test_neither_torch_nor_transformers_is_imported() -> None:
    arguments = ["replay", str(LOG), "--method", "ngram,suffix", "--num-speculative-tokens", "2", "--json"]
    code = (
        f"import sys; sys.argv = ['batchspec', *{arguments!r}]\n"
        "from batchspec.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print([name for name in ('torch', 'transformers') if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert ended.stderr.strip() == "[]"
    assert json.loads(ended.stdout)["replayed"]["num_requests"] == 24


def test_the_speed_is_printed() -> None:
    command = [sys.executable, "-m", "batchspec.replay.speed", "--tokens", "100000", "--lengths", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    first, second, memory = ended.stdout.splitlines()
    assert "tokens/s" in first
    assert "k 1 to 2" in second
    assert memory.startswith("most memory: ")


def test_rows_that_are_no_responses_are_named_and_are_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = LOG.read_text().splitlines()
    text = {"custom_id": "text", "choices": [{"text": "x"}]}
    log = write_log(tmp_path / "log.jsonl", [*lines[:3], text])
    arguments = (str(log), "--num-speculative-tokens", "2", "--json")
    assert call(monkeypatch, capsys, *arguments)[0] == 0
    write_log(log, [*lines[:3], lines[3][:-9]])
    status, out, err = call(monkeypatch, capsys, *arguments)
    assert status == 1
    assert json.loads(out)["replayed"]["num_requests"] == 3
    assert err == f"batchspec: rows that are no responses are left out: {log} line 4\n"
