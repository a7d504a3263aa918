"""The report for a terminal; every mark is a character, colour adds nothing that the words do not say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from batchspec.plain_text import printable_lines
from batchspec.report.layout import Paragraph, Part, Table, Tone
from batchspec.report.sections import report_parts

__all__ = ["parts_renderable", "report_renderable"]

_STYLES = {Tone.PLAIN: "", Tone.QUIET: "dim", Tone.GOOD: "bold green", Tone.BAD: "bold red"}
_WIDE = 96


def report_renderable(document: Mapping[str, Any]) -> RenderableType:
    """Return the report for ``rich.console.Console.print``; made for 100 columns, readable in 80.

    Args:
        document: what ``report_document`` made.
    """
    return parts_renderable(report_parts(document))


def parts_renderable(parts: Iterable[Part]) -> RenderableType:
    """Return the parts with an empty line between them."""
    spaced = [piece for part in parts for piece in (_render(part), Text())]
    return Group(*spaced[:-1])


def _render(part: Part) -> RenderableType:
    if isinstance(part, Paragraph):
        return Text(printable_lines(part.text), style=_STYLES[part.tone])
    notes = (Text(printable_lines(note), style="dim") for note in part.notes)
    return Group(Text(part.title, style="bold"), _FittedTable(table=part), *notes)


@dataclass(frozen=True, kw_only=True)
class _FittedTable:
    """A table that moves its columns together before it breaks a word."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _grid(self.table, gap=1 if options.max_width < _WIDE else 2)


def _grid(table: Table, *, gap: int) -> RichTable:
    grid = RichTable(box=box.HORIZONTALS, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    rows = [[printable_lines(cell) for cell in row] for row in table.rows]
    for index, column in enumerate(table.columns):
        header = "\n".join(map(printable_lines, filter(None, (column.header, column.detail))))
        lines = header.split() if gap == 1 else _two_lines(header)
        width = min(column.longest, max(cell_len(text) for text in ("", *lines, *(row[index] for row in rows))))
        grid.add_column(
            Text(header),
            justify="left" if column.is_text else "right",
            vertical="bottom",
            overflow="fold",
            width=None if column.is_text else width,  # what has a width is made narrower last: text is broken first
            max_width=width,
        )
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    return grid


def _two_lines(header: str) -> list[str]:
    """Return the header broken in two where its longer line is shortest; its own line ends stay."""
    if "\n" in header:
        return header.split("\n")
    words = header.split()
    breaks = [[" ".join(words[:i]), " ".join(words[i:])] for i in range(1, len(words) + 1)]
    return min(breaks, key=lambda lines: max(map(cell_len, lines)), default=[])
