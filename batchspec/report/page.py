"""A report as one page of HTML that needs nothing else: styles inside, no script, a policy that forbids requests."""

from collections.abc import Iterable

from batchspec.report.layout import Column, Paragraph, Part, Table
from batchspec.report.pictures.markup import Markup, joined, tag
from batchspec.report.style import STYLE

__all__ = ["parts_page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def parts_page(title: str, parts: Iterable[Part], figures: Iterable[Markup]) -> str:
    """Return the page, with a newline at its end.

    Args:
        title: of the page.
        parts: paragraphs and tables; their text is escaped.
        figures: pictures, shown together behind the paragraphs that come first.
    """
    first, rest = _split(list(parts))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", STYLE),
    )
    drawn = list(figures)
    gallery = tag("div", *drawn, class_="figures") if drawn else Markup()
    body = tag("body", tag("main", tag("h1", title), *map(_render, first), gallery, *map(_render, rest)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _split(parts: list[Part]) -> tuple[list[Part], list[Part]]:
    """Return the paragraphs before the first table, and the rest."""
    for index, part in enumerate(parts):
        if isinstance(part, Table):
            return parts[:index], parts[index:]
    return parts, []


def _render(part: Part) -> Markup:
    if isinstance(part, Paragraph):
        return joined(*(tag("p", line, class_=part.tone.value) for line in part.text.splitlines()))
    return tag(
        "section",
        tag("h2", part.title),
        tag("div", tag("table", _head(part.columns), _body(part)), class_="wide"),
        *(tag("p", note, class_="note") for note in part.notes),
    )


def _head(columns: tuple[Column, ...]) -> Markup:
    names = (": ".join(filter(None, (column.header, column.detail))) for column in columns)
    return tag(
        "thead",
        tag("tr", *(tag("th", name, class_=_side(column)) for name, column in zip(names, columns, strict=True))),
    )


def _body(table: Table) -> Markup:
    rows = (
        tag("tr", *(tag("td", cell, class_=_side(column)) for cell, column in zip(row, table.columns, strict=True)))
        for row in table.rows
    )
    return tag("tbody", *rows)


def _side(column: Column) -> str:
    return "text" if column.is_text else "number"
