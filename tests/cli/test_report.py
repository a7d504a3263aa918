"""``batchspec report``: formats, files, the gate and its exit status."""

import gc
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from batchspec.ingest.blocks import Log
from batchspec.report.logs.survey import LogSurvey
from tests.ingest.logs import FOREIGN, ORACLE, batch_line, body, write_rows
from tests.report.logs.made import request

from .calling import call

GREEDY = str(ORACLE / "ngram_k3_n1-3" / "greedy.responses.jsonl")
LENGTH = 1 + 915 / 509


def test_tables_and_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(monkeypatch, capsys, "report", GREEDY)
    assert (status, err) == (0, "")
    assert "2.7976" in out
    status, out, _ = call(monkeypatch, capsys, "report", GREEDY, "--json")
    assert status == 0
    assert json.loads(out)["overall"]["pooled"]["mean_acceptance_length"]["value"] == LENGTH
    assert call(monkeypatch, capsys, "report", GREEDY, "--format", "json")[1] == out


@pytest.mark.parametrize(("name", "begin"), [("a.html", "<!doctype html>"), ("b.md", "# Acc"), ("c.csv", "requests,")])
def test_an_output_file_is_written_as_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, begin: str
) -> None:
    file = tmp_path / "new" / name
    told = f"batchspec: the directory {file.parent} was made for {name}\n"
    assert call(monkeypatch, capsys, "report", GREEDY, "-o", str(file)) == (0, "", told)
    assert call(monkeypatch, capsys, "report", GREEDY, "-o", str(file)) == (0, "", "")
    assert file.read_text().startswith(begin)
    assert [path.name for path in file.parent.iterdir()] == [name]
    form = file.suffix[1:]
    assert call(monkeypatch, capsys, "report", GREEDY, "--format", form)[1].startswith(begin)


def test_a_named_format_goes_into_a_file_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.foo"
    assert call(monkeypatch, capsys, "report", GREEDY, "-o", str(file), "--format", "csv") == (0, "", "")
    assert file.read_text().startswith("requests,")


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(Path(GREEDY).read_bytes())))
    status, out, _ = call(monkeypatch, capsys, "report", "-", "--json")
    assert (status, json.loads(out)["files"]) == (0, ["-"])


def test_logs_of_many_engines_together(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    paths = sorted(map(str, FOREIGN.glob("*.jsonl")))
    status, out, _ = call(monkeypatch, capsys, "report", *paths, "--by", "engine", "--json")
    document = json.loads(out)
    assert status == 0
    assert list(document["groups"]) == list(document["engines"])
    assert document["rows"]["num_malformed"] == document["rows"]["num_contradictory"] == 0


HELD = [
    "acceptance_length>=2.7",
    "position[0]>=0.6",
    "conditional[2]<0.6",
    "mean:acceptance_length>2.9",
    "acceptance_rate>=0.6",
    f"file:{GREEDY}:acceptance_length>=2.7",
    "macro:acceptance_length<=2.8",
]


def test_requirements_that_hold(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    required = [word for text in HELD for word in ("--require", text)]
    status, out, err = call(monkeypatch, capsys, "report", GREEDY, "--json", *required)
    assert (status, err) == (0, "")
    assert [one["holds"] for one in json.loads(out)["requirements"]] == [True] * len(HELD)


FAILED = [
    ("acceptance_length>=2.9", "the value is 2.7976, interval 2."),
    ("position[0]>=0.9", "the value is 0.6916, interval 0."),
    ("position[3]>=0.1", "the value is not known"),
    ("tokens_per_decode_step>=1", "the value is not known"),
    ("category:code:acceptance_length>=1", "the value is not known"),
]


@pytest.mark.parametrize(("text", "sentence"), FAILED)
def test_a_requirement_that_fails_says_value_and_interval_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    status, out, err = call(monkeypatch, capsys, "report", GREEDY, "--require", text, "--require", "position[0]>0")
    assert status == 1
    assert err.startswith(f"batchspec: requirement {text} failed: {sentence}")
    assert err.count("\n") == 1
    assert f"Requirement {text} FAILED" in out
    assert "Requirement position[0]>0 holds" in out


def test_a_gate_on_a_category(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "log.jsonl", [request([4, 4], category="code"), request([0], category="prose")])
    gate = ["--require", "category:code:acceptance_length>=5", "--require", "category:prose:position[0]<=0"]
    assert call(monkeypatch, capsys, "report", path, *gate, "--json")[0] == 0
    gate = ["--require", "category:prose:acceptance_length>=2"]
    assert call(monkeypatch, capsys, "report", path, *gate, "--json")[0] == 1


def test_a_gate_without_any_numbers_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "log.jsonl", [batch_line(body(None))])
    assert call(monkeypatch, capsys, "report", path, "--require", "acceptance_length>=1")[0] == 1
    assert (
        call(monkeypatch, capsys, "report", path, "--by", "engine", "--require", "macro:acceptance_length>=1")[0] == 1
    )


MISTAKES: list[tuple[list[str], str]] = [
    ([], "missing"),
    (["missing.jsonl"], "missing.jsonl"),
    (["."], "is a directory without responses.jsonl: give a run directory or a file"),
    (["log.jsonl", "--by", "size"], "--by 'size' is no grouping: choose one of category, engine, file"),
    (["log.jsonl", "--format", "pdf"], "--format 'pdf' is no format: choose one of table, md, html, csv, json"),
    (["log.jsonl", "--format", "csv", "--json"], "--json and --format csv contradict each other"),
    (["log.jsonl", "--require", "speed>=2"], "'speed' is no quantity"),
    (["log.jsonl", "--require", "macro:acceptance_length>=2"], "needs --by"),
    (["log.jsonl", "--by", "engine", "--require", "category:x:acceptance_length>=2"], "needs --by category"),
    (["log.jsonl", "-o", "log.jsonl"], "log.jsonl is the input as well as an output"),
    (
        ["log.jsonl", "-o", "new/x.foo"],
        "output new/x.foo ends in .foo: end it in .md, .markdown, .html, .htm, .csv, .json, .txt, or give --format",
    ),
    (["log.jsonl", "-o", "."], "output . is a directory: name a file in it"),
    (["log.jsonl", "-o", "log.jsonl/x.html"], "log.jsonl is not a directory"),
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
    write_rows(tmp_path / "log.jsonl", [request([1])])
    status, out, err = call(monkeypatch, capsys, "report", *args)
    assert (status, out) == (2, "")
    assert expected in err
    assert err.startswith("batchspec: ")
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_too_many_groups_are_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [request([1], category=f"c{index}", is_detailed=index % 2 == 0) for index in range(501)]
    path = write_rows(tmp_path / "log.jsonl", rows)
    status, _, err = call(monkeypatch, capsys, "report", path, "--by", "category")
    assert status == 2
    assert "more than 500 different values of category" in err


def test_a_damaged_log_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00broken")
    status, out, err = call(monkeypatch, capsys, "report", str(tmp_path / "log.jsonl.gz"))
    assert (status, out) == (2, "")
    assert "it is truncated or corrupt" in err


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "batchspec", "report", GREEDY, "--format", "md"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert "standard output cannot be written" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_neither_torch_nor_transformers_is_imported() -> None:
    code = (
        "import sys; from batchspec.cli import app;"
        "app(['report', sys.argv[1], '--format', 'html'], standalone_mode=False);"
        "print([name for name in ('torch', 'transformers', 'numba', 'pandas') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code, GREEDY], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_the_collector_runs_again_afterwards(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    during: list[bool] = []
    add_log = LogSurvey.add_log

    def watched(survey: LogSurvey, log: Log) -> None:
        during.append(gc.isenabled())
        add_log(survey, log)

    monkeypatch.setattr(LogSurvey, "add_log", watched)
    call(monkeypatch, capsys, "report", GREEDY)
    assert (during, gc.isenabled()) == ([False], True)


def test_rows_that_are_left_out_are_named_and_are_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = request([1], custom_id="b\x1b[31m")
    bad["response"]["body"]["metrics"]["speculative_decoding"]["num_spec_steps"] = 2
    path = write_rows(tmp_path / "log.jsonl", [request([4, 4]), bad, b"torn {"])
    status, out, err = call(monkeypatch, capsys, "report", path, "--json", "--require", "acceptance_length>=5")
    assert status == 1
    assert json.loads(out)["rows"]["num_with_acceptance"] == 1
    assert err.splitlines() == [
        f"batchspec: {path} line 2 (b�[31m) is left out: 2 steps, but the acceptance histogram adds up to 1",
        f"batchspec: {path} line 3 is left out: the line is not JSON (invalid literal, expected 'true' at column 1): "
        "correct it there",
    ]
    bad["custom_id"] = "y" * 5000
    _, _, err = call(monkeypatch, capsys, "report", write_rows(tmp_path / "log.jsonl", [request([4, 4]), bad]))
    assert f"line 2 ({'y' * 60}…) is left out" in err
    path = write_rows(tmp_path / "log.jsonl", [request([4]), *[b"torn {"] * 25])
    status, _, err = call(monkeypatch, capsys, "report", path)
    assert (status, len(err.splitlines())) == (1, 21)
    assert err.endswith("batchspec: 5 more rows are left out\n")
    refused = {"error": {"code": "expired", "message": "x"}}
    path = write_rows(tmp_path / "log.jsonl", [request([4]), batch_line(body(None)), refused])
    assert call(monkeypatch, capsys, "report", path)[0::2] == (0, "")


def test_a_link_or_a_pipe_is_written_to_and_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.md").symlink_to(tmp_path / "new.md")
    assert call(monkeypatch, capsys, "report", GREEDY, "-o", str(tmp_path / "link.md"))[0] == 0
    assert (tmp_path / "link.md").is_symlink()
    text = (tmp_path / "new.md").read_text()
    os.mkfifo(tmp_path / "pipe.md")
    reader = os.open(tmp_path / "pipe.md", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert call(monkeypatch, capsys, "report", GREEDY, "-o", str(tmp_path / "pipe.md"))[0] == 0
        assert os.read(reader, 2**16).decode() == text
    finally:
        os.close(reader)
    assert (tmp_path / "pipe.md").is_fifo()


def test_the_responses_of_a_run_directory_are_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Path(write_rows(tmp_path / "responses.jsonl", [request([1])]))
    before = log.read_bytes()
    for name in (str(tmp_path), str(tmp_path / "resp*.jsonl")):
        status, _, err = call(monkeypatch, capsys, "report", name, "-o", str(log))
        assert status == 2
        assert "is the input as well as an output" in err
    assert log.read_bytes() == before


def test_no_log_is_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_rows(tmp_path / "responses.jsonl", [request([1])])
    for other in (log, str(tmp_path), f"{tmp_path}/*.jsonl"):
        status, out, err = call(monkeypatch, capsys, "report", log, other)
        assert (status, out, err) == (2, "", f"batchspec: {log} is named twice: name every log once\n")
    copy = write_rows(tmp_path / "copy.jsonl", [request([1])])
    assert call(monkeypatch, capsys, "report", log, copy)[0] == 0


def test_an_empty_log_is_told_of_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "log.jsonl", [])
    status, _, err = call(monkeypatch, capsys, "report", path)
    assert (status, err) == (0, f"batchspec: {path} holds no rows\n")


def test_a_sweeps_directory_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sweep.json").write_text("{}")
    status, _, err = call(monkeypatch, capsys, "report", str(tmp_path))
    assert status == 2
    assert "holds a sweep: its points are the run directories in it, give one of these" in err
