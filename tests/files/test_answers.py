"""Earlier answers as token ids, and the outputs log, whatever the file is like."""

import json
from pathlib import Path
from typing import Any

import pytest

from batchspec.errors import UsageError
from batchspec.files import OutputsLog, RecordedAnswers


def record_of(name: str, *choices: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"custom_id": name, "response": {"status_code": 200, "body": {"choices": list(choices)}}, **others}


def write(path: Path, *records: Any, end: str = "") -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + end)
    return str(path)


def spell(text: str) -> list[int]:
    return [ord(character) for character in text]


def test_ids_are_taken_where_there_are_some_and_texts_are_encoded_else(tmp_path: Path) -> None:
    path = write(
        tmp_path / "old.jsonl",
        record_of("a", {"index": 0, "text": "no", "token_ids": [5, 6]}),
        record_of("b", {"index": 1, "text": "z"}, {"index": 0, "text": "hi"}),
        record_of("c", {"index": 0, "message": {"role": "assistant", "content": "ok"}}),
        record_of("d", {"index": 0, "message": {"role": "assistant", "content": None}}),
        {"custom_id": "e", "response": None, "error": {"message": "no"}},
        record_of("a", {"index": 0, "text": "no", "token_ids": [7]}),
        end='{"custom_id": "torn',
    )
    answers = RecordedAnswers(path, encode=spell)
    found = {name: answers.answer_to(name, 0) for name in "abcdef"}
    assert {name: None if answer is None else answer.tolist() for name, answer in found.items()} == {
        "a": [7],
        "b": spell("hi"),
        "c": spell("ok"),
        "d": [],
        "e": None,
        "f": None,
    }
    second, beyond = answers.answer_to("b", 1), answers.answer_to("b", 2)
    assert second is not None
    assert beyond is not None
    assert (second.tolist(), beyond.tolist()) == (spell("z"), spell("hi"))
    assert len(answers) == 4
    assert [answer.tolist() for answer in answers.latest(2)] == [[], [7]]
    assert len(list(answers.latest(-1))) == 5


def test_detailed_metrics_tell_the_ids_that_choices_do_not(tmp_path: Path) -> None:
    def with_sequences(name: str, sequences: Any, *choices: dict[str, Any]) -> dict[str, Any]:
        record = record_of(name, *choices)
        record["response"]["body"]["metrics"] = {"batchspec": {"sequences": sequences}}
        return record

    one, two = ({"prompt_token_ids": [1], "token_ids": ids, "cut_token_ids": []} for ids in ([5, 6], [7]))
    path = write(
        tmp_path / "old.jsonl",
        with_sequences("a", [one], {"index": 0, "text": "hi", "token_ids": None}),
        with_sequences("turns", [one, two], {"index": 1, "text": "z"}, {"index": 0, "text": "hi"}),
        with_sequences("own", [one], {"index": 0, "text": "hi", "token_ids": [8]}),
        with_sequences("fewer", [one], {"index": 0, "text": "hi"}, {"index": 1, "text": "z"}),
        with_sequences("strange", [3], {"index": 0, "text": "hi"}),
        with_sequences("none", None, {"index": 0, "text": "hi"}),
    )
    answers = RecordedAnswers(path, encode=spell)
    found = {name: answers.answer_to(name, 0) for name in ("a", "turns", "own", "fewer", "strange", "none")}
    assert {name: answer.tolist() for name, answer in found.items() if answer is not None} == {
        "a": [5, 6],
        "turns": [5, 6],
        "own": [8],
        "fewer": spell("hi"),
        "strange": spell("hi"),
        "none": spell("hi"),
    }
    second = answers.answer_to("turns", 1)
    assert second is not None
    assert second.tolist() == [7]


def test_numbers_that_are_none_are_passed_over(tmp_path: Path) -> None:
    path = write(
        tmp_path / "old.jsonl",
        record_of("a", {"index": [1], "text": "no"}, {"index": 1, "text": "b", "token_ids": ["x", 2**70]}),
        record_of(
            "b", {"index": "2", "text": "c", "token_ids": [-1]}, {"index": None, "text": "d", "token_ids": [1.5]}
        ),
    )
    answers = RecordedAnswers(path, encode=spell)
    found = [answers.answer_to(name, sample) for name in "ab" for sample in (0, 1)]
    assert [None if one is None else one.tolist() for one in found] == [spell(text) for text in ("no", "b", "c", "d")]


def test_a_file_that_holds_no_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.jsonl cannot be recalled \(No such file"):
        RecordedAnswers(str(tmp_path / "nowhere.jsonl"), encode=spell)
    path = tmp_path / "text.jsonl"
    path.write_text('{"custom_id": "a"}\nhello\n')
    with pytest.raises(UsageError, match=r"text\.jsonl line 2 is not a record"):
        RecordedAnswers(str(path), encode=spell)


def test_an_outputs_log_goes_on_behind_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "outputs.jsonl"
    with OutputsLog(path, is_fresh=True) as log:
        log.append(0, 0, [1, 2])
        log.append(3, 1, [4])
        log.append(0, 0, [9])
        log.sync()
    with path.open("ab") as file:
        file.write(b'{"index": 7, "sam')
    with OutputsLog(path, is_fresh=False) as log:
        log.append(1, 0, [6])
        assert list(log.read({0, 1, 3})) == [(0, 0, [9]), (1, 0, [6]), (3, 1, [4])]
        assert list(log.read({3})) == [(3, 1, [4])]
    with OutputsLog(path, is_fresh=True) as log:
        assert list(log.read({0, 1, 3})) == []


def test_an_outputs_log_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"outputs\.jsonl cannot be written \(No such file or directory\)"):
        OutputsLog(tmp_path / "missing" / "outputs.jsonl", is_fresh=True)
