"""Parts as plain text, for files and pipes."""

import io
from collections.abc import Iterable

from rich.console import Console

from batchspec.report.layout import Part
from batchspec.report.render import parts_renderable

__all__ = ["parts_text"]

_WIDTH = 100


def parts_text(parts: Iterable[Part], *, width: int = _WIDTH) -> str:
    """Return the parts as lines of at most ``width`` characters, none of which ends with a space."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(parts_renderable(parts))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
