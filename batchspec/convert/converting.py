"""Any conversion over a whole file: lines out, and an account of what became of every row."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.decode import decode_row
from batchspec.files.source import Row

__all__ = ["Conversion", "Converted", "as_object"]


@dataclass(frozen=True, kw_only=True)
class Converted:
    """What became of a row.

    Attributes:
        line: the new line.
        is_renamed: whether it got another id than the row had, since an earlier row had that.
        left_out: names of the row's fields that have no place in the new line.
    """

    line: Mapping[str, Any]
    is_renamed: bool = False
    left_out: tuple[str, ...] = ()


class Conversion:
    """Rows of a file on their way into another form.

    Args:
        rows: number and content of every row.
        convert: makes the new line; raises RequestError for a row that cannot be converted.
        where: how messages name the row of a number.
        say: is told every row that could not be converted, in one sentence.

    Attributes:
        num_rows: rows so far.
        num_failed: of them, those that could not be converted.
        num_renamed: of them, those that got another id.
        left_out: by name, how many of them had a field that has no place in the new form.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        convert: Callable[[Row], Converted],
        *,
        where: Callable[[int], str],
        say: Callable[[str], None],
    ):
        self._rows = rows
        self._convert = convert
        self._where = where
        self._say = say
        self.num_rows = self.num_failed = self.num_renamed = 0
        self.left_out: Counter[str] = Counter()

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield the new lines, in the order of the rows."""
        for row in self._rows:
            self.num_rows += 1
            try:
                converted = self._convert(row)
            except RequestError as error:
                self.num_failed += 1
                self._say(f"{self._where(row[0])}: {error.message}")
                continue
            self.num_renamed += converted.is_renamed
            self.left_out.update(converted.left_out)
            yield converted.line

    def sentence(self, *, is_whole: bool = True) -> str:
        """Return the account in one sentence; ``is_whole``: whether the lines were written to the end."""
        parts = [f"{self.num_rows - self.num_failed:,} of {self.num_rows:,} rows converted"]
        if self.num_renamed:
            parts.append(f"{self.num_renamed:,} renamed, since an earlier row had their id")
        if self.left_out:
            fields = ", ".join(f"{name} (in {count:,})" for name, count in sorted(self.left_out.items()))
            parts.append(f"left out: {fields}")
        if not is_whole:
            parts.append(f"the output was closed after {self.num_rows:,}, any further rows were not read")
        return "; ".join(parts)

    def document(self) -> dict[str, Any]:
        """Return the account for JSON."""
        return {
            "num_rows": self.num_rows,
            "num_converted": self.num_rows - self.num_failed,
            "num_failed": self.num_failed,
            "num_renamed": self.num_renamed,
            "left_out": dict(sorted(self.left_out.items())),
        }


def as_object(row: Row) -> Mapping[str, Any]:
    """Return the object that a line or a Parquet row holds.

    Raises:
        RequestError: it holds none.
    """
    _, content = row
    if isinstance(content, RequestError):
        raise content
    return content if isinstance(content, dict) else decode_row(content)
