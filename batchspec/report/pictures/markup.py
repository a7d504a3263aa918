"""Markup that cannot be broken from outside: whatever is not markup already is escaped."""

import html

from batchspec.plain_text import printable_lines

__all__ = ["Markup", "joined", "tag"]

_EMPTY = frozenset({"meta", "line", "rect", "circle", "polyline", "path"})


class Markup(str):
    """Text that is markup; only ``tag`` and ``joined`` make it."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element; children that are no markup become text, attribute values are always text.

    Args:
        name: of the element.
        children: markup or text.
        attributes: an underscore at the end of a name is dropped, others become hyphens; None leaves one out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_written(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: object) -> Markup:
    """Return the children one behind the other, text escaped."""
    return Markup(
        "".join(child if isinstance(child, Markup) else html.escape(printable_lines(str(child))) for child in children)
    )


def _written(value: object) -> str:
    """Return an attribute's value; coordinates with one digit after the point."""
    return f"{value:.1f}" if isinstance(value, float) else printable_lines(str(value))
