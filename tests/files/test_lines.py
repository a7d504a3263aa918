import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from batchspec.files.lines import split_lines


def lines_of(*chunks: bytes, max_line_bytes: int = 1000) -> list[tuple[int, bytes | None]]:
    return [(line.number, line.data) for line in split_lines(chunks, max_line_bytes=max_line_bytes)]


def test_last_line_needs_no_newline() -> None:
    assert lines_of(b"a\nb") == lines_of(b"a\nb\n") == [(1, b"a"), (2, b"b")]


def test_blank_lines_are_skipped_but_counted() -> None:
    assert lines_of(b"\n  \n\r\n\t\na\n\n\nb") == [(5, b"a"), (8, b"b")]


def test_nothing_but_newline_ends_a_line() -> None:
    inside = "x\u2028y\u2029z\u0085\x0b\x0c\x1c\r!".encode()
    assert lines_of(inside + b"\n2") == [(1, inside), (2, b"2")]


def test_byte_order_mark_is_dropped_from_the_first_line_only() -> None:
    assert lines_of(b"\xef\xbb", b"\xbfa\n\xef\xbb\xbfb") == [(1, b"a"), (2, b"\xef\xbb\xbfb")]


def test_byte_order_mark_alone_is_blank() -> None:
    assert lines_of(b"\xef\xbb\xbf\na") == [(2, b"a")]


@given(st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"x", b"\n")), max_size=12))
def test_the_size_of_chunks_does_not_matter(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    assume(not whole.startswith(b"\xef\xbb\xbf"))
    expected = [(n, data) for n, data in enumerate(whole.split(b"\n"), start=1) if data.strip(b" \t\r")]
    assert lines_of(*chunks) == expected
    assert lines_of(*(bytes([byte]) for byte in whole)) == expected


@pytest.mark.parametrize("size", [1, 3, 50])
def test_an_over_long_line_is_reported_and_the_next_is_whole(size: int) -> None:
    data = b"ok\n" + b"x" * 11 + b"\n" + b"y" * 10 + b"\n" + b"z" * 12
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    assert lines_of(*chunks, max_line_bytes=10) == [(1, b"ok"), (2, None), (3, b"y" * 10), (4, None)]


def test_memory_does_not_grow_with_an_over_long_line() -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(2000):
            yield b"x" * 10_000

    tracemalloc.start()
    assert [line.data for line in split_lines(endless(), max_line_bytes=100_000)] == [None]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
