"""Bytes to lines: split at b"\\n" and nowhere else, whatever the size of the chunks they come in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["MAX_LINE_BYTES", "Line", "split_lines"]

MAX_LINE_BYTES = 64 * 2**20
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line without its newline.

    Attributes:
        number: 1-based, blank lines counted.
        data: its bytes; None when they were more than the limit, so that they were not kept.
    """

    number: int
    data: bytes | None


def split_lines(chunks: Iterable[bytes], *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """Yield the lines that are not blank; the last may lack its newline, the first may begin with a byte order mark.

    Args:
        chunks: the stream in pieces of any size.
        max_line_bytes: a longer line is not kept in memory; it comes with ``data=None``.
    """
    pieces: list[bytes] = []
    num_bytes, number = 0, 1
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            pieces.append(end)
            yield from _whole(number, pieces, is_kept=num_bytes + len(end) <= max_line_bytes)
            pieces, num_bytes, number = [], 0, number + 1
        num_bytes += len(rest)
        if num_bytes > max_line_bytes:
            pieces.clear()
        else:
            pieces.append(rest)
    yield from _whole(number, pieces, is_kept=num_bytes <= max_line_bytes)


def _whole(number: int, pieces: list[bytes], *, is_kept: bool) -> Iterator[Line]:
    """Yield the line made of the pieces, or nothing when it is blank."""
    if not is_kept:
        yield Line(number=number, data=None)
        return
    data = b"".join(pieces)
    if number == 1:
        data = data.removeprefix(_BOM)
    if data.strip(_BLANK):
        yield Line(number=number, data=data)
