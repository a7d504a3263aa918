"""The report as Markdown, from the same parts as the terminal's."""

from collections.abc import Iterable, Mapping
from typing import Any

from batchspec.plain_text import printable_lines
from batchspec.report.layout import Paragraph, Part, Table, Tone
from batchspec.report.sections import report_parts

__all__ = ["parts_markdown", "report_markdown"]


def report_markdown(document: Mapping[str, Any]) -> str:
    """Return the report as Markdown text, with a newline at its end.

    Args:
        document: what ``report_document`` made.
    """
    return parts_markdown("Report", report_parts(document))


def parts_markdown(title: str, parts: Iterable[Part]) -> str:
    """Return the parts under a title as Markdown text, with a newline at its end."""
    return "\n\n".join([f"# {title}", *map(_render, parts)]) + "\n"


def _render(part: Part) -> str:
    return _render_paragraph(part) if isinstance(part, Paragraph) else _render_table(part)


def _render_paragraph(paragraph: Paragraph) -> str:
    if paragraph.tone in (Tone.GOOD, Tone.BAD):
        return f"**{_escape(paragraph.text)}**"
    return "\n".join(f"- {_escape(line)}" for line in paragraph.text.splitlines())


def _render_table(table: Table) -> str:
    lines = [
        _row(": ".join(filter(None, (column.header, column.detail))) for column in table.columns),
        _row(("---" if column.is_text else "---:" for column in table.columns), is_escaped=True),
        *(_row(cells) for cells in table.rows),
    ]
    notes = [f"- {_escape(note)}" for note in table.notes]
    return "\n\n".join([f"## {table.title}", "\n".join(lines), *(["\n".join(notes)] if notes else [])])


def _row(cells: Iterable[str], *, is_escaped: bool = False) -> str:
    return "| " + " | ".join(cell if is_escaped else _escape(cell) for cell in cells) + " |"


def _escape(text: str) -> str:
    """Return the text with the characters escaped that Markdown would read as markup or as a cell's end."""
    return "".join(f"\\{character}" if character in "\\`*<[|" else character for character in printable_lines(text))
