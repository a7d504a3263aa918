"""An array's entries, whatever the pieces it comes in."""

import json
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.convert.entries import split_entries
from batchspec.files.lines import split_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=6)


def pieces_of(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut the data into pieces of these sizes, over and over."""
    pieces, place, turn = [], 0, 0
    while place < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[place : place + size])
        place, turn = place + size, turn + 1
    return pieces


@given(
    rows=ROWS,
    indent=st.sampled_from([None, 0, 3]),
    is_ascii=st.booleans(),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    bom=st.booleans(),
    ends=st.sampled_from(["", "\n", " \r\n"]),
)
def test_every_entry_comes_once_and_whole(
    rows: list[dict[str, Any]], indent: int | None, is_ascii: bool, sizes: list[int], bom: bool, ends: str
) -> None:
    text = ends + json.dumps(rows, indent=indent, ensure_ascii=is_ascii) + ends
    data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    lines = list(split_entries(pieces_of(data, sizes)))
    assert [line.number for line in lines] == list(range(1, len(rows) + 1))
    assert [json.loads(line.data or b"") for line in lines] == rows


@given(
    rows=st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), min_size=1, max_size=5),
    size=st.integers(1, 9),
)
def test_a_file_that_is_no_array_is_split_at_its_lines(rows: list[dict[str, Any]], size: int) -> None:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert list(split_entries(pieces_of(data, [size]))) == list(split_lines([data]))


def test_an_empty_file_has_no_entries() -> None:
    assert list(split_entries([])) == []
    assert list(split_entries([b" \n", b"\t"])) == []
    assert list(split_entries([b"[", b" ]"])) == []


@pytest.mark.parametrize(
    ("data", "num_entries", "reason"),
    [
        (b'[{"a": 1}, {"a": ', 1, "entry 2 is not JSON"),
        (b'[{"a": 1}', 1, "not closed behind entry 1"),
        (b"[", 0, "not closed behind entry 0"),
        (b'[{"a": 1}] x', 1, "something follows the array's end"),
        (b'[{"a": 1}, nonsense, {"a": 2}]', 1, "entry 2 is not JSON"),
        (b"[" + b"[" * 100_000, 0, "entry 1 is not JSON"),
    ],
)
def test_what_breaks_off_says_where(data: bytes, num_entries: int, reason: str) -> None:
    """And everything before it has come."""
    entries = split_entries(pieces_of(data, [5]))
    assert len(list(islice(entries, num_entries))) == num_entries
    with pytest.raises(OSError, match=reason):
        next(entries)


def test_bytes_that_are_not_utf8_stay_as_they_are() -> None:
    (line,) = split_entries([b'[{"a": "\xff', b'\xfe"}]'])
    assert line.data == b'{"a": "\xff\xfe"}'


def test_memory_does_not_grow_with_the_array() -> None:
    """The buffer holds what was read and not yet passed: a piece, and an entry."""
    import tracemalloc

    entry = json.dumps({"text": "x" * 2000}).encode()

    def pieces() -> Any:
        yield b"["
        for i in range(4000):
            yield (b"," if i else b"") + entry
        yield b"]"

    tracemalloc.start()
    assert sum(1 for _ in split_entries(pieces())) == 4000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20
