"""The entries of a JSON file that is one array, however it is laid out, without holding the array in memory."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from itertools import chain
from json import JSONDecodeError, JSONDecoder

from batchspec.files.lines import MAX_LINE_BYTES, Line, split_lines

__all__ = ["split_entries"]

_BOM = b"\xef\xbb\xbf"
_BLANK = " \t\r\n"
# Bytes that are not UTF-8 pass through, so that whoever reads the entry can say where they are.
_ERRORS = "surrogateescape"
_Utf8 = getincrementaldecoder("utf-8")


def split_entries(chunks: Iterable[bytes]) -> Iterator[Line]:
    """Yield the entries of an array, numbered from 1, or the lines of a file that is none.

    Args:
        chunks: the file in pieces of any size.

    Raises:
        OSError: the array breaks off or is not JSON; raised where that shows.
    """
    pieces = iter(chunks)
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= len(_BOM) and head.removeprefix(_BOM).strip():
            break
    start = head.removeprefix(_BOM).lstrip()
    if not start.startswith(b"["):
        yield from split_lines(chain([head], pieces))
        return
    yield from _Array(chain([start[1:]], pieces)).entries()


class _Array:
    """An array that is read piece by piece, behind its opening bracket."""

    def __init__(self, pieces: Iterator[bytes]):
        self._pieces = pieces
        self._decode = JSONDecoder().raw_decode
        self._utf8 = _Utf8(_ERRORS)
        self._text = ""
        self._place = 0

    def entries(self) -> Iterator[Line]:
        number = 1
        while (mark := self._next_mark(number)) != "]":
            if mark == ",":
                self._place += 1
                continue
            end = self._end_of_entry(number)
            yield Line(number=number, data=self._text[self._place : end].encode(errors=_ERRORS))
            self._place = end
            number += 1
        self._place += 1
        if self._skip_blanks():
            raise OSError(f"something follows the array's end behind entry {number - 1}")

    def _next_mark(self, number: int) -> str:
        if not self._skip_blanks():
            raise OSError(f"the array is not closed behind entry {number - 1}")
        return self._text[self._place]

    def _skip_blanks(self) -> bool:
        """Go to the next character that is not blank; False at the end of the file."""
        while True:
            while self._place < len(self._text) and self._text[self._place] in _BLANK:
                self._place += 1
            if self._place < len(self._text):
                return True
            if not self._read(1):
                return False

    def _end_of_entry(self, number: int) -> int:
        """Return where the entry ends, reading on as long as it does not end in what was read."""
        while True:
            try:
                _, end = self._decode(self._text, self._place)
            except (JSONDecodeError, RecursionError) as error:
                reason = error.msg if isinstance(error, JSONDecodeError) else "nested too deeply"
                num_read = len(self._text) - self._place
                if num_read > MAX_LINE_BYTES or not self._read(num_read):
                    raise OSError(f"entry {number} is not JSON: {reason}") from error
            else:
                if end < len(self._text) or not self._read(1):
                    return end

    def _read(self, num_characters: int) -> bool:
        """Read at least so many characters more and drop what was passed; False when there was nothing to read."""
        parts = [self._text[self._place :]]
        num_new = 0
        while num_new < num_characters and (text := self._next_text()) is not None:
            parts.append(text)
            num_new += len(text)
        self._text, self._place = "".join(parts), 0
        return num_new > 0

    def _next_text(self) -> str | None:
        """Return the next piece, as far as its characters are whole; None at the end."""
        for piece in self._pieces:
            text = self._utf8.decode(piece)
            if text:
                return text
        return self._utf8.decode(b"", final=True) or None
