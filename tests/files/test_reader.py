"""The reader never raises for what stands in a row, and says what is wrong in a sentence."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from batchspec.files import Columns, RowDefaults, open_source, read_requests
from batchspec.files.parameters import HONOURED, OFF_VALUES
from batchspec.request import RejectedLine, Request, TextPrompt

from .feeding import batch_line, chat_line, jsonl, read, rejected, served


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return tmp_path / "prompts.jsonl"


BAD_LINES = [
    (b"not json", "the line is not JSON", "invalid_json_line"),
    (b'{"prompt": "a"', "at column 15", "invalid_json_line"),
    (b'{"prompt": "a"} {"prompt": "b"}', "not JSON", "invalid_json_line"),
    (b'{"prompt": "\xff"}', r"byte 13 of the line \(0xff\) is not UTF-8", "invalid_json_line"),
    (b'{"prompt": "\xed\xa0\x80"}', "byte 13 of the line", "invalid_json_line"),
    (b'{"prompt": "\\ud800"}', "surrogate pair stands alone", "invalid_json_line"),
    (b'{"prompt": "\\udc00 x"}', "surrogate pair stands alone", "invalid_json_line"),
    (b'["prompt"]', r'the line is the array \["prompt"\]: write one object per line', "invalid_json_line"),
    (b'"prompt"', 'the line is the string "prompt"', "invalid_json_line"),
    (b"null", "the line is null", "invalid_json_line"),
    (b'{"prompt": "a", "temperature": NaN}', "not JSON", "invalid_json_line"),
    (b'{"prompt": "a", "temperature": Infinity}', "not JSON", "invalid_json_line"),
    (b'{"prompt": "a", "temperature": 1e999}', "too large", "invalid_json_line"),
    (b'{"prompt": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply", "invalid_json_line"),
    (b'{"prompt": "a", "seed": 123456789012345678901234567890}', '"seed" is the number', "invalid_value"),
    (b"1" * 5000, "too large", "invalid_json_line"),
    (b"{}", "the row has no", "missing_required_parameter"),
]


@pytest.mark.parametrize(("line", "words", "code"), BAD_LINES)
def test_a_bad_line_is_rejected_and_its_neighbours_are_served(
    prompts: Path, line: bytes, words: str, code: str
) -> None:
    prompts.write_bytes(b'{"prompt": "before"}\n' + line + b'\n{"prompt": "after"}\n')
    before, bad, after = read(prompts)
    assert (served(before).custom_id, served(after).custom_id) == ("line-1", "line-3")
    assert (bad.index, bad.line) == (1, 2)
    assert rejected(bad).message.startswith("prompts.jsonl line 2: ")
    assert re.search(words, rejected(bad).message)
    assert rejected(bad).code == code
    assert len(rejected(bad).message) < 400


def test_index_counts_rows_and_line_counts_lines(prompts: Path) -> None:
    prompts.write_bytes(b'\xef\xbb\xbf\r\n{"prompt": "a"}\r\n\r\n{"prompt": "b"}')
    assert [(r.index, r.line) for r in read(prompts)] == [(0, 2), (1, 4)]


def test_separators_inside_strings_do_not_end_a_line(prompts: Path) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be"
    prompts.write_bytes(orjson.dumps({"prompt": text}) + b'\n{"prompt":\r"b"}\n')
    first, second = read(prompts)
    assert served(first).prompts == (TextPrompt(text=text),)
    assert served(second).prompts == (TextPrompt(text="b"),)


def test_the_first_of_a_repeated_id_is_served_and_the_second_names_it(prompts: Path) -> None:
    prompts.write_bytes(jsonl(batch_line("x"), batch_line("y"), batch_line("x") | {"category": "c"}, batch_line("z")))
    first, _, again, last = read(prompts)
    assert (served(first).custom_id, served(last).custom_id) == ("x", "z")
    assert rejected(again).code == "duplicate_custom_id"
    assert (rejected(again).custom_id, rejected(again).category) == ("x", "c")
    assert '"x" was already used on line 1: give every request an id of its own' in rejected(again).message


def test_a_rejected_line_has_used_its_id(prompts: Path) -> None:
    prompts.write_bytes(jsonl(batch_line("x", temperature=9), batch_line("x")))
    first, again = read(prompts)
    assert rejected(first).param == "temperature"
    assert "already used on line 1" in rejected(again).message


def test_a_made_up_id_can_collide_too(prompts: Path) -> None:
    prompts.write_bytes(jsonl({"prompt": "a", "id": "line-2"}, {"prompt": "b"}))
    assert "already used on line 1" in rejected(read(prompts)[1]).message


def test_a_rejection_keeps_the_id_and_category_that_could_be_read(prompts: Path) -> None:
    bad: dict[str, Any] = {"temperature": 3}
    rows: list[Any] = [
        batch_line("a", **bad) | {"category": "qa"},
        {"prompt": "a", "question_id": 81, "category": "qa"} | bad,
        {"prompt": "a", "id": [1], "category": 7} | bad,
        batch_line("b") | {"custom_id": 5},
    ]
    prompts.write_bytes(jsonl(*rows))
    names = [(rejected(r).custom_id, rejected(r).category) for r in read(prompts)]
    assert names == [("a", "qa"), ("81", "qa"), (None, None), ("5", None)]


def test_many_ids_are_told_apart(prompts: Path) -> None:
    prompts.write_bytes(jsonl(*({"prompt": "a", "id": i % 2500} for i in range(5000))))
    results = read(prompts)
    assert all(served(r).custom_id == str(i) for i, r in enumerate(results[:2500]))
    assert all(f"already used on line {i + 1}:" in rejected(r).message for i, r in enumerate(results[2500:]))


def test_ids_are_compared_as_a_whole(prompts: Path) -> None:
    ids = ["a\0b", "a\0c", "a", "A", "é", "e\u0301", "1", "01"]
    prompts.write_bytes(jsonl(*map(batch_line, ids)))
    assert [served(r).custom_id for r in read(prompts)] == ids


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["custom_id", "method", "url", "body", "turns", "category", "id", *sorted(HONOURED), *OFF_VALUES]
)
PLAUSIBLE = JSON | st.sampled_from(
    ["POST", "/v1/completions", "/v1/chat/completions", [{"role": "user"}], ["a"], [1], 1]
)
ROWS = st.dictionaries(NAMES, PLAUSIBLE | st.dictionaries(NAMES, PLAUSIBLE, max_size=6), max_size=8)
SOUND = st.sampled_from([batch_line("s"), chat_line("s")])


def dumped(row: Any) -> bytes:
    try:
        return orjson.dumps(row, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return repr(row).encode(errors="surrogatepass")


LINES = st.binary(max_size=40) | ROWS.map(dumped) | st.builds(lambda a, b: dumped(a | {"body": b}), SOUND, ROWS)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=6), st.sampled_from([Columns(), Columns(prompt="url", id="n")]))
def test_any_bytes_make_requests_or_rejections(prompts: Path, lines: list[bytes], columns: Columns) -> None:
    data = b"\n".join(lines)
    assume(not data.startswith((b"PAR1", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")))
    prompts.write_bytes(data)
    results = read(prompts, columns=columns)
    bom = b"\xef\xbb\xbf"
    parts = [part.removeprefix(bom) if i == 0 else part for i, part in enumerate(data.split(b"\n"))]
    assert [r.line for r in results] == [i for i, part in enumerate(parts, start=1) if part.strip(b" \t\r")]
    assert [r.index for r in results] == list(range(len(results)))
    for result in results:
        if isinstance(result, RejectedLine):
            assert re.match(rf"prompts\.jsonl line {result.line}: [^\n]+: [^\n]+", result.message)
        else:
            assert result.prompts
            assert result.sampling.max_tokens is None or result.sampling.max_tokens >= 1


def test_a_bare_row_without_an_id_is_called_after_its_line_served_or_not(tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    path.write_text('{"prompt": "a"}\n{"prompt": "a", "temperature": 9}\n{"method": "POST"}\n')
    lines = list(read_requests(open_source(path), columns=Columns(), defaults=RowDefaults()))
    assert [line.custom_id for line in lines] == ["line-1", "line-2", None]
    assert [isinstance(line, Request) for line in lines] == [True, False, False]


NAMED_ROWS: list[Any] = [
    batch_line("x"),
    batch_line("x", temperature=9),
    batch_line("y") | {"custom_id": 5},
    batch_line("y") | {"custom_id": None},
    {"prompt": "a"},
    {"prompt": "b", "id": "x"},
    {"prompt": "c", "id": "line-5"},
    {"prompt": "d", "id": 5.0},
    {"prompt": "e", "body": "x", "id": "y"},
    {"prompt": "f", "id": [1]},
    {"prompt": "g", "id": "y"},
    [],
]


@settings(max_examples=100)
@example(rows=[NAMED_ROWS[8], NAMED_ROWS[10]], finished={0}, columns=Columns(prompt="prompt"))
@given(
    rows=st.lists(st.sampled_from(NAMED_ROWS), max_size=12),
    finished=st.sets(st.integers(0, 11)),
    columns=st.sampled_from((Columns(), Columns(prompt="prompt"), Columns(prompt="body"), Columns(id="id"))),
)
def test_rows_that_are_finished_change_nothing_about_the_others(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], finished: set[int], columns: Columns
) -> None:
    path = tmp_path_factory.mktemp("rows") / "a.jsonl"
    path.write_bytes(jsonl(*rows))
    left = read_requests(open_source(path), columns=columns, defaults=RowDefaults(), finished=finished)
    assert list(left) == [line for line in read(path, columns=columns) if line.index not in finished]
