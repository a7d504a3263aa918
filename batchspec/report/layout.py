"""The parts of a report before they take a form: paragraphs and tables of finished strings."""

from dataclasses import dataclass
from enum import StrEnum

from batchspec.plain_text import printable

__all__ = [
    "ABSENT",
    "Column",
    "Paragraph",
    "Part",
    "Table",
    "Tone",
    "bar",
    "count",
    "decimal",
    "percentage",
    "printable",
]

ABSENT = "\N{EN DASH}"


class Tone(StrEnum):
    """How a paragraph is meant; colour only repeats what the words say."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """One or more lines of text."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table; text stands to the left, numbers to the right.

    Attributes:
        header: what the column shows.
        detail: which kind of it, where several columns share a header.
        is_text: whether the cells are text.
        longest: most characters side by side on a terminal; longer text is folded.
    """

    header: str
    detail: str = ""
    is_text: bool = False
    longest: int = 32


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of finished cells.

    Attributes:
        title: what the table shows.
        columns: from left to right.
        rows: (rows, columns) cells.
        notes: short lines beneath, definitions above all.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


Part = Paragraph | Table


def count(number: int | None) -> str:
    """Return a count with thousands separated."""
    return ABSENT if number is None else f"{number:,}"


def decimal(number: float | None, *, digits: int = 4) -> str:
    """Return a number with that many digits after the point."""
    return ABSENT if number is None else f"{number:,.{digits}f}"


def percentage(fraction: float | None) -> str:
    """Return a fraction of one in per cent."""
    return ABSENT if fraction is None else f"{fraction * 100:.2f} %"


def bar(fraction: float | None, *, width: int = 30) -> str:
    """Return a bar of whole and partial blocks; something greater than nothing is never invisible."""
    eighths = round((fraction or 0) * width * 8)
    if fraction and not eighths:
        eighths = 1
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
