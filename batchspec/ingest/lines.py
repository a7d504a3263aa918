"""The lines of a log in blocks, as fast as they can be told apart; a block is about a megabyte."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from batchspec.errors import DamagedInputError
from batchspec.files.lines import MAX_LINE_BYTES
from batchspec.files.part_checks import damaged
from batchspec.files.source import InputSource

__all__ = ["LineBlock", "line_blocks", "split_blocks"]

_CHUNK_BYTES = 2**20
_BOM = b"\xef\xbb\xbf"

LineBlock = tuple[int, list[bytes | None]]
"""Number of the first line, and the lines without their newlines; None for one too long to keep."""


def line_blocks(source: InputSource) -> Iterator[LineBlock]:
    """Yield the lines of a log that is one file and not Parquet.

    Raises:
        DamagedInputError: the file is truncated or corrupt; raised where that shows.
    """
    (part,) = source.parts
    try:
        with part.open() as file:
            stream = part.decompressed(file)
            yield from split_blocks(iter(lambda: stream.read(_CHUNK_BYTES), b""))
    except (OSError, pa.ArrowException) as error:
        raise DamagedInputError(damaged(part, error)) from error


def split_blocks(chunks: Iterable[bytes], *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[LineBlock]:
    """Yield the lines that end in each chunk, the last one though it has no newline.

    Args:
        chunks: the log in pieces of any size up to ``max_line_bytes``.
        max_line_bytes: a longer line is not kept in memory.
    """
    pieces: list[bytes] = []
    num_bytes, number = 0, 1
    for chunk in chunks:
        lines: list[bytes | None] = [*chunk.split(b"\n")]
        rest = lines.pop() or b""
        if lines:
            lines[0] = _joined(pieces, lines[0] or b"", num_bytes=num_bytes, limit=max_line_bytes, number=number)
            pieces, num_bytes = [], 0
            yield number, lines
            number += len(lines)
        num_bytes += len(rest)
        if num_bytes > max_line_bytes:
            pieces.clear()
        else:
            pieces.append(rest)
    yield number, [_joined(pieces, b"", num_bytes=num_bytes, limit=max_line_bytes, number=number)]


def _joined(pieces: list[bytes], end: bytes, *, num_bytes: int, limit: int, number: int) -> bytes | None:
    """Return the line that the pieces make; None if it is too long."""
    if num_bytes + len(end) > limit:
        return None
    line = b"".join((*pieces, end))
    return line.removeprefix(_BOM) if number == 1 else line
