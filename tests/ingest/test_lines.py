from hypothesis import given
from hypothesis import strategies as st

from batchspec.files.lines import split_lines
from batchspec.ingest.lines import split_blocks

_LONGEST = 12
PIECES = st.lists(st.binary(max_size=_LONGEST).map(lambda piece: piece.replace(b"\x00", b"\n")), max_size=12)


def lines_of(chunks: list[bytes], *, max_line_bytes: int) -> list[tuple[int, bytes | None]]:
    blocks = split_blocks(chunks, max_line_bytes=max_line_bytes)
    return [(number + index, data) for number, lines in blocks for index, data in enumerate(lines)]


@given(chunks=PIECES, limit=st.integers(_LONGEST, 30))
def test_blocks_hold_the_lines_that_runs_read(chunks: list[bytes], limit: int) -> None:
    expected = [(line.number, line.data) for line in split_lines(chunks, max_line_bytes=limit)]
    found = [
        (number, data)
        for number, data in lines_of(chunks, max_line_bytes=limit)
        if data is None or data.strip(b" \t\r")
    ]
    assert found == expected


def test_the_last_line_may_lack_its_newline() -> None:
    assert lines_of([b"a\nb"], max_line_bytes=9) == [(1, b"a"), (2, b"b")]
    assert lines_of([b"a\n", b"b\n"], max_line_bytes=9) == [(1, b"a"), (2, b"b"), (3, b"")]
