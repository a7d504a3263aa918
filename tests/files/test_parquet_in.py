import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchspec.errors import DamagedInputError, UsageError
from batchspec.files import Columns, open_source
from batchspec.files.fingerprint import sha256_of
from batchspec.request import ChatPrompt, StructuredOutput, TextPrompt

from .feeding import batch_line, chat_line, jsonl, parse, read, rejected, served, user

LINES = [
    batch_line("a", prompt="Hi", max_tokens=3),
    batch_line("b", prompt="Ho", temperature=0.5, stop_token_ids=[1]),
    chat_line("c", messages=[user("Hi")], seed=5) | {"category": "qa"},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "prompts.parquet"


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def column(name: str) -> list[Any]:
    return [line.get(name) for line in LINES]


def test_json_text_and_structs_make_the_requests_that_jsonl_makes(path: Path) -> None:
    flat = {name: column(name) for name in ("custom_id", "method", "url", "category")}
    text = read(write(path, flat | {"body": [json.dumps(body) for body in column("body")]}))
    struct = read(write(path, flat | {"body": column("body")}))
    expected = [parse(line) for line in LINES]
    assert [served(r).sampling for r in text] == [r.sampling for r in expected]
    assert [(r.custom_id, r.prompts, r.category) for r in map(served, text)] == [
        (r.custom_id, r.prompts, r.category) for r in expected
    ]
    assert text == struct


def test_bare_columns(path: Path) -> None:
    columns = {
        "question_id": [1, 2, 3, 4],
        "prompt": ["a", None, None, None],
        "messages": [None, [user("b")], None, None],
        "turns": pa.array([None, None, ["c", "d"], ["e"]], type=pa.large_list(pa.large_string())),
        "max_tokens": [3.0, None, None, None],
        "when": [datetime(2026, 1, 1)] * 4,
    }
    first, second, third, fourth = map(served, read(write(path, columns)))
    assert (first.custom_id, first.prompts, first.sampling.max_tokens) == ("1", (TextPrompt(text="a"),), 3)
    assert second.prompts == (ChatPrompt(messages=(user("b"),)),)
    assert (third.turns, fourth.turns) == (("d",), ())


def test_messages_as_json_text(path: Path) -> None:
    [request] = read(write(path, {"messages": [json.dumps([user("c")])]}))
    assert served(request).prompts == (ChatPrompt(messages=(user("c"),)),)


def test_null_fields_of_structs_are_not_given(path: Path) -> None:
    formats = [{"type": "text", "schema": None}, {"type": "json_schema", "schema": "{}"}]
    first, second = read(write(path, {"prompt": ["a", "b"], "response_format": formats}))
    assert served(first).prompts == (TextPrompt(text="a"),)
    assert rejected(second).param == "response_format.schema"


def test_rows_are_numbered_across_batches_and_groups(path: Path) -> None:
    source = open_source(write(path, {"prompt": [str(i) for i in range(300)]}, row_group_size=70))
    assert [(n, row) for n, row in source.rows()] == [(i + 1, {"prompt": str(i)}) for i in range(300)]
    assert source.sha256() == sha256_of(path)
    assert source.dataset()["size"] == path.stat().st_size


def test_a_bad_row_is_rejected_by_its_number_and_keeps_its_id(path: Path) -> None:
    bodies = ['{"prompt": "a"}', '{"prompt"', "[]", '{"prompt": 5}']
    ids = ["a", "b", "c", "d"]
    columns = {"custom_id": ids, "method": ["POST"] * 4, "url": ["/v1/completions"] * 4, "body": bodies}
    first, *bad = read(write(path, columns))
    assert served(first).custom_id == "a"
    assert [rejected(r).custom_id for r in bad] == ids[1:]
    messages = [rejected(r).message for r in bad]
    assert messages[0].startswith('prompts.parquet row 2: "body" is text that is not JSON (')
    assert messages[1].startswith('prompts.parquet row 3: "body" is an empty array: give an object')
    assert messages[2].startswith('prompts.parquet row 4: "prompt" is the number 5: give')


def test_text_that_is_not_utf8_spoils_its_own_row_only(path: Path) -> None:
    texts = pa.array([b"a", b"\xff", b"c"], type=pa.binary()).cast(pa.string(), safe=False)
    first, second, third = read(write(path, {"prompt": texts}))
    assert (served(first).prompts, served(third).prompts) == ((TextPrompt(text="a"),), (TextPrompt(text="c"),))
    assert rejected(second).message.startswith("prompts.parquet row 2: a value cannot be decoded (")


def test_not_a_number_is_refused(path: Path) -> None:
    [result] = read(write(path, {"prompt": ["a"], "temperature": [float("nan")]}))
    assert '"temperature" is the number nan' in rejected(result).message


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_cut_file_is_a_usage_error(path: Path, keep: int) -> None:
    data = write(path, {"prompt": ["a"] * 100}).read_bytes()
    path.write_bytes(data[:keep])
    with pytest.raises(UsageError, match=r"prompts\.parquet is not a whole Parquet file .*: make it again"):
        open_source(path)


def test_a_column_name_that_is_not_utf8_is_a_usage_error(path: Path) -> None:
    data = write(path, {"prompt": ["a"], "question": ["b"]}).read_bytes()
    path.write_bytes(data.replace(b"question", b"quest\xab\xffn"))
    with pytest.raises(UsageError, match="not a whole Parquet file"):
        open_source(path)


def test_jsonl_named_parquet_is_a_usage_error(path: Path) -> None:
    path.write_bytes(jsonl({"prompt": "a"}))
    with pytest.raises(UsageError, match="not a whole Parquet file"):
        open_source(path)


def test_damage_inside_is_a_sentence_after_the_rows_before_it(path: Path) -> None:
    texts = [f"{i * i * 7919:064x}" for i in range(2000)]
    write(path, {"prompt": texts}, row_group_size=500, use_dictionary=False, compression="zstd")
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = b"\0" * 2000
    path.write_bytes(data)
    numbers: list[int] = []
    with pytest.raises(DamagedInputError, match="truncated or corrupt"):
        numbers.extend(number for number, _ in open_source(path).rows())
    assert 500 <= len(numbers) < 2000


NESTED: dict[str, Any] = {
    "logit_bias": {"5": 1.0},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "chat_template_kwargs": {"thinking": True},
    "stream_options": {"include_usage": True},
}


def test_nested_parameters_as_json_text_and_as_structs(path: Path) -> None:
    row = {"messages": [user("c")], "stream": True, "stop": ["{}"], "id": "a"}
    structs = read(write(path, {name: [value] for name, value in (row | NESTED).items()}))
    text = {name: json.dumps(value) for name, value in NESTED.items()}
    texts = read(write(path, {name: [value] for name, value in (row | text).items()}))
    body: dict[str, list[Any]] = {"body": [{name: value for name, value in (row | text).items() if name != "id"}]}
    line = {"custom_id": ["a"], "method": ["POST"], "url": ["/v1/chat/completions"]}
    assert texts == structs == read(write(path, line | body)) == [parse(row | NESTED)]


def test_rows_of_differing_structs_do_not_see_the_keys_of_each_other(path: Path) -> None:
    columns = {
        "id": ["a", "b"],
        "prompt": ["a", "b"],
        "logit_bias": [{"5": 1.0}, {"7": 2.0}],
        "structured_outputs": [{"regex": "a"}, {"choice": ["b"]}],
    }
    first, second = map(served, read(write(path, columns)))
    expected = {"id": "a", "prompt": "a", "logit_bias": {"5": 1}, "guided_regex": "a"}
    assert first == parse(expected)
    assert (second.sampling.logit_bias, second.sampling.structured) == (
        ((7, 2.0),),
        StructuredOutput(choice=("b",)),
    )


@pytest.mark.parametrize("name", ["prompt", "stop", "guided_regex"])
def test_text_columns_are_never_read_as_json(path: Path, name: str) -> None:
    columns = {"prompt": ["a"], "id": ["a"]} | {name: ['["a"]']}
    assert read(write(path, columns)) == [parse({"prompt": "a", "id": "a"} | {name: '["a"]'})]


def test_a_column_that_was_named_for_the_prompt_is_text(path: Path) -> None:
    write(path, {"body": ["Hi there", '{"a": 1}'], "tools": ["x", "y"]})
    columns = Columns(prompt="body", id="tools")
    assert [served(r).prompts for r in read(path, columns=columns)] == [
        (TextPrompt(text="Hi there"),),
        (TextPrompt(text='{"a": 1}'),),
    ]
    write(path, {"turns": ['["a", "b"]']})
    assert served(read(path, columns=Columns(prompt="turns"))[0]).turns == ("b",)


def test_nested_text_that_is_not_json_is_refused_by_name(path: Path) -> None:
    bad, null = read(write(path, {"prompt": ["a", "b"], "logit_bias": ["{5: 1}", "null"]}))
    assert (rejected(bad).param, rejected(bad).code) == ("logit_bias", "invalid_json")
    assert served(null).sampling.logit_bias == ()
