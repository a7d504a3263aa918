"""Spec-Bench, ShareGPT and text become lines that ask the same, under ids that no other line has."""

import gzip
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.errors import UsageError
from batchspec.request import ChatPrompt, Endpoint, TextPrompt

from .converting import converted, served_by_run

QUESTIONS: list[dict[str, Any]] = [
    {"question_id": 81, "category": "writing", "turns": ["Compose a post.", "Rewrite it."], "reference": ["x", "y"]},
    {"question_id": 161, "category": "translation", "turns": ["Übersetze: Haus 😀"], "reference": None},
    {"question_id": "q-3", "turns": ["Who?"]},
]
TALK = [
    {"from": "system", "value": "Be brief."},
    {"from": "human", "value": "Hi"},
    {"from": "gpt", "value": "Hello"},
    {"from": "user", "value": "And now?"},
    {"from": "gpt", "value": "Now."},
]


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_spec_bench_keeps_ids_categories_and_turns(tmp_path: Path) -> None:
    lines, said, account = converted(write(tmp_path / "question.jsonl", QUESTIONS), "spec-bench")
    assert lines[0] == {"custom_id": "81", "category": "writing", "turns": ["Compose a post.", "Rewrite it."]}
    assert lines[1] == {
        "custom_id": "161",
        "category": "translation",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"messages": [{"role": "user", "content": "Übersetze: Haus 😀"}]},
    }
    assert lines[2]["custom_id"] == "q-3"
    assert "category" not in lines[2]
    assert said == []
    assert account == {
        "num_rows": 3,
        "num_converted": 3,
        "num_failed": 0,
        "num_renamed": 0,
        "left_out": {"reference": 1},
    }


def test_batchspec_run_asks_what_the_questions_ask(tmp_path: Path) -> None:
    lines, _, _ = converted(write(tmp_path / "question.jsonl", QUESTIONS), "spec-bench")
    first, second, _ = served_by_run(write(tmp_path / "prompts.jsonl", lines))
    assert (first.custom_id, first.category, first.turns) == ("81", "writing", ("Rewrite it.",))
    assert second.endpoint is Endpoint.CHAT
    assert second.prompts == (ChatPrompt(messages=({"role": "user", "content": "Übersetze: Haus 😀"},)),)


def test_only_the_first_turn(tmp_path: Path) -> None:
    lines, _, _ = converted(write(tmp_path / "q.jsonl", QUESTIONS), "spec-bench", is_first_turn=True)
    assert lines[0]["body"] == {"messages": [{"role": "user", "content": "Compose a post."}]}


def test_a_conversation_ends_with_its_last_question(tmp_path: Path) -> None:
    path = write(tmp_path / "talk.jsonl", [{"id": "a_0", "conversations": TALK, "model": "gpt-4"}])
    lines, _, account = converted(path, "sharegpt")
    assert lines[0]["custom_id"] == "a_0"
    assert lines[0]["body"]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "And now?"},
    ]
    assert account["left_out"] == {"model": 1}
    lines, _, _ = converted(path, "sharegpt", is_first_turn=True)
    assert [message["content"] for message in lines[0]["body"]["messages"]] == ["Be brief.", "Hi"]


def test_a_conversation_that_begins_with_an_answer_keeps_it(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [{"id": "b", "conversations": TALK[2:]}])
    lines, _, _ = converted(path, "sharegpt")
    assert [message["role"] for message in lines[0]["body"]["messages"]] == ["assistant", "user"]
    lines, _, _ = converted(path, "sharegpt", is_first_turn=True)
    assert lines[0]["body"]["messages"] == [{"role": "user", "content": "And now?"}]


def test_text_lines_are_completions_or_chats(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_bytes("  Once upon\r\n\n\t\nÄ time \n".encode())
    lines, _, account = converted(tmp_path / "prompts.txt", "text")
    assert lines == [
        {"custom_id": "line-1", "method": "POST", "url": "/v1/completions", "body": {"prompt": "  Once upon"}},
        {"custom_id": "line-4", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Ä time "}},
    ]
    assert account["num_rows"] == 2
    first, _ = served_by_run(write(tmp_path / "lines.jsonl", lines))
    assert first.prompts == (TextPrompt(text="  Once upon"),)
    lines, _, _ = converted(tmp_path / "prompts.txt", "text", is_chat=True)
    assert lines[1]["body"] == {"messages": [{"role": "user", "content": "Ä time "}]}
    assert lines[1]["url"] == "/v1/chat/completions"


def test_ids_are_made_unique_and_that_is_told(tmp_path: Path) -> None:
    """Also where the new name stands later in the file itself, and among rows that have no id of their own."""
    ids = ["a", "a", "a-line-2", "a", None, "line-5"]
    rows = [{"turns": ["x"]} | ({} if name is None else {"question_id": name}) for name in ids]
    lines, _, account = converted(write(tmp_path / "q.jsonl", rows), "spec-bench")
    names = [line["custom_id"] for line in lines]
    assert names == ["a", "a-line-2", "a-line-2-line-3", "a-line-4", "line-5", "line-5-line-6"]
    assert len(set(names)) == len(names)
    assert account["num_renamed"] == 4
    served_by_run(write(tmp_path / "prompts.jsonl", lines))


BAD_QUESTIONS: list[tuple[str, str]] = [
    ("not json", "the line is not JSON"),
    ("[1]", "the line is the array [1]"),
    ('{"question_id": 1}', '"turns" is missing'),
    ('{"question_id": 1, "turns": []}', '"turns" is an empty array'),
    ('{"question_id": 1, "turns": ["a", 3]}', '"turns[1]" is the number 3'),
    ('{"question_id": [], "turns": ["a"]}', '"question_id" is an empty array'),
    ('{"question_id": 1, "category": 7, "turns": ["a"]}', '"category" is the number 7'),
    ('{"turns": ["\\ud83d"]}', "half of a surrogate pair"),
]


@pytest.mark.parametrize(("bad", "expected"), BAD_QUESTIONS, ids=[bad for bad, _ in BAD_QUESTIONS])
def test_a_question_that_cannot_be_converted_is_named(tmp_path: Path, bad: str, expected: str) -> None:
    (tmp_path / "q.jsonl").write_text('{"turns": ["a"]}\n' + bad + '\n{"turns": ["b"]}\n')
    lines, said, account = converted(tmp_path / "q.jsonl", "spec-bench")
    assert [line["custom_id"] for line in lines] == ["line-1", "line-3"]
    (sentence,) = said
    assert sentence.startswith("q.jsonl line 2: ")
    assert expected in sentence
    assert account["num_failed"] == 1


BAD_TALKS: list[tuple[Any, str]] = [
    ({"id": "x"}, '"conversations" is missing'),
    ({"id": "x", "conversations": []}, '"conversations" is an empty array'),
    ({"id": "x", "conversations": "hi"}, '"conversations" is the string "hi"'),
    ({"id": "x", "conversations": [TALK[2]]}, 'at least one message from "human"'),
    ({"id": "x", "conversations": [{"from": "tool", "value": "1"}]}, '"conversations[0].from" is "tool"'),
    ({"id": "x", "conversations": [{"value": "1"}]}, '"conversations[0].from" is null'),
    ({"id": "x", "conversations": [{"from": "human"}]}, '"conversations[0].value" is null'),
    ({"id": "x", "conversations": ["hi"]}, '"conversations[0]" is the string "hi"'),
]


@pytest.mark.parametrize("is_array", [True, False])
@pytest.mark.parametrize(("bad", "expected"), BAD_TALKS, ids=[expected for _, expected in BAD_TALKS])
def test_a_conversation_that_cannot_be_converted_is_named(
    tmp_path: Path, bad: Any, expected: str, is_array: bool
) -> None:
    rows = [{"conversations": TALK}, bad, {"conversations": TALK}]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(rows, indent=2) if is_array else "".join(json.dumps(row) + "\n" for row in rows))
    lines, said, _ = converted(path, "sharegpt")
    assert [line["custom_id"] for line in lines] == ["entry-1", "entry-3"]
    (sentence,) = said
    assert sentence.startswith("talk.json entry 2: ")
    assert expected in sentence


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_bytes(b"good\nb\xffd\n")
    lines, said, _ = converted(tmp_path / "p.txt", "text")
    assert len(lines) == 1
    assert said == ["p.txt line 2: byte 2 of the line (0xff) is not UTF-8: save the file as UTF-8"]


def test_compressed_files_and_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with gzip.open(tmp_path / "talk.json.gz", "wb") as file:
        file.write(orjson.dumps([{"id": "a", "conversations": TALK}]))
    lines, _, _ = converted(tmp_path / "talk.json.gz", "sharegpt")
    assert lines[0]["custom_id"] == "a"
    pq.write_table(pa.Table.from_pylist([{"id": "a", "conversations": TALK}]), tmp_path / "talk.parquet")
    assert converted(tmp_path / "talk.parquet", "sharegpt")[0] == lines
    pq.write_table(pa.Table.from_pylist(QUESTIONS[:1]), tmp_path / "q.parquet")
    assert converted(tmp_path / "q.parquet", "spec-bench")[0][0]["turns"] == QUESTIONS[0]["turns"]
    with pytest.raises(UsageError, match="has no lines of text"):
        converted(tmp_path / "q.parquet", "text")


def test_an_array_that_breaks_off_is_damaged_input(tmp_path: Path) -> None:
    text = json.dumps([{"id": str(i), "conversations": TALK} for i in range(3)])
    (tmp_path / "t.json").write_text(text[:-40])
    with pytest.raises(UsageError) as error:
        converted(tmp_path / "t.json", "sharegpt")
    assert "t.json cannot be read further (entry 3 is not JSON" in str(error.value)
    assert "\n" not in str(error.value)
