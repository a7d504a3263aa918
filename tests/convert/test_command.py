"""``batchspec convert`` as it is typed: lines on standard output, remarks and rows that failed on standard error."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calling import call

QUESTIONS = (
    '{"question_id": 1, "category": "qa", "turns": ["Who?"]}\n'
    '{"question_id": 2, "category": "qa"}\n'
    '{"question_id": 3, "category": "qa", "turns": ["Why?"], "reference": ["x"]}\n'
)


@pytest.fixture(autouse=True)
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("question.jsonl").write_text(QUESTIONS)
    Path("good.jsonl").write_text(QUESTIONS.splitlines(keepends=True)[0])
    Path("talk.json").write_text(json.dumps([{"conversations": [{"from": "human", "value": "a"}]}], indent=1))


def test_a_row_that_fails_is_named_and_makes_exit_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = call(monkeypatch, capsys, "convert", "question.jsonl", "--from", "spec-bench")
    assert status == 1
    assert [json.loads(line)["custom_id"] for line in out.splitlines()] == ["1", "3"]
    named, account = err.splitlines()
    assert named.startswith('batchspec: question.jsonl line 2: "turns" is missing')
    assert account == "batchspec: 2 of 3 rows converted; left out: reference (in 1)"


def test_a_clean_file_makes_exit_status_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(monkeypatch, capsys, "convert", "good.jsonl", "--from", "spec-bench")
    assert (status, len(out.splitlines())) == (0, 1)
    assert err == "batchspec: 1 of 1 rows converted\n"


def test_the_account_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard output where that is free, else on standard error."""
    args = ("convert", "question.jsonl", "--from", "spec-bench", "--json")
    _, out, err = call(monkeypatch, capsys, *args)
    assert json.loads(err.splitlines()[-1])["num_converted"] == 2
    assert len(out.splitlines()) == 2
    status, out, _ = call(monkeypatch, capsys, *args, "--output", "made/prompts.jsonl")
    assert status == 1
    assert json.loads(out)["left_out"] == {"reference": 1}
    assert len(Path("made/prompts.jsonl").read_text().splitlines()) == 2


def test_a_damaged_file_leaves_no_output_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("talk.json").write_text('[{"conversations": [{"from": "human", "value": "a"}]}, {')
    status, _, err = call(monkeypatch, capsys, "convert", "talk.json", "--from", "sharegpt", "-o", "out.jsonl")
    assert status == 2
    assert "entry 2 is not JSON" in err
    assert sorted(path.name for path in Path().iterdir()) == ["good.jsonl", "question.jsonl", "talk.json"]


MISTAKES = [
    (["question.jsonl"], "give either --from"),
    (["question.jsonl", "--from", "spec-bench", "--to", "aiperf"], "give either --from"),
    (
        ["talk.json", "--from", "spec-bench"],
        "talk.json is an array, spec-bench means one object a line: try --from sha",
    ),
    (["question.jsonl", "--from", "mt-bench"], "'mt-bench' is not one of"),
    (["missing.jsonl", "--from", "text"], "missing.jsonl cannot be read"),
    (["..", "--from", "text"], "is a directory that holds more than part files"),
    (["*.jsonl", "--from", "spec-bench", "-o", "question.jsonl"], "is the input as well as an output"),
    ([".", "--to", "aiperf"], "responses.jsonl cannot be read"),
    (["question.jsonl", "--from", "spec-bench", "--chat"], "--chat has an effect only with --from text"),
    (["question.jsonl", "--from", "text", "--first-turn"], "--first-turn has an effect only with"),
    (["question.jsonl", "--to", "aiperf", "--first-turn"], "--first-turn has an effect only with"),
    (["question.jsonl", "--from", "spec-bench", "-o", "question.jsonl"], "is the input as well as an output"),
    (["question.jsonl", "--from", "spec-bench", "-o", "."], "is a directory"),
]


@pytest.mark.parametrize(("args", "expected"), MISTAKES, ids=[" ".join(args) for args, _ in MISTAKES])
def test_a_mistake_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: list[str], expected: str
) -> None:
    status, out, err = call(monkeypatch, capsys, "convert", *args)
    assert (status, out) == (2, "")
    assert err.startswith("batchspec: ")
    assert err.count("\n") == 1
    assert expected in err


def test_through_pipes(tmp_path: Path) -> None:
    """From standard input, and into a reader that goes away."""
    command = [sys.executable, "-m", "batchspec", "convert", "-", "--from", "text"]
    text = "".join(f"prompt {i}\n" for i in range(20_000)).encode()
    whole = subprocess.run(command, input=text, capture_output=True, check=True)
    assert len(whole.stdout.splitlines()) == 20_000
    assert whole.stderr == b"batchspec: 20,000 of 20,000 rows converted\n"
    (tmp_path / "prompts.txt").write_bytes(text)
    with (tmp_path / "prompts.txt").open("rb") as source:
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(100)
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
        assert b"Traceback" not in err
        assert re.fullmatch(
            rb"batchspec: ([\d,]+) of \1 rows converted; the output was closed after \1, "
            rb"any further rows were not read\n",
            err,
        )
        process.stderr.close()
        assert process.wait() == 0


def test_an_empty_file_is_told_of_and_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty.txt").touch()
    status, out, err = call(monkeypatch, capsys, "convert", "empty.txt", "--from", "text")
    assert (status, out) == (0, "")
    assert err == "batchspec: empty.txt holds no rows\nbatchspec: 0 of 0 rows converted\n"


def test_conversations_given_as_questions_are_recognised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("talk.jsonl").write_text('{"conversations": [{"from": "human", "value": "a"}]}\n')
    status, _, err = call(monkeypatch, capsys, "convert", "talk.jsonl", "--from", "spec-bench")
    assert status == 1
    assert 'talk.jsonl line 1: the row has "conversations" and no "turns": try --from sharegpt' in err
