"""The frame that every picture shares: its size, grid, axes and their names."""

from collections.abc import Sequence
from dataclasses import dataclass

from batchspec.report.pictures.markup import Markup, joined, tag
from batchspec.report.pictures.scale import Scale

__all__ = ["Frame"]

_FONT_HEIGHT = 4


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A picture's outer measures, in pixels.

    Attributes:
        width: of the whole picture.
        height: of the whole picture.
        left: margin for the labels of the upward axis.
        bottom: margin for the labels of the rightward axis.
    """

    width: int = 640
    height: int = 280
    left: int = 64
    bottom: int = 44
    top: int = 14
    right: int = 16

    def across(self, low: float, high: float) -> Scale:
        """Return the rightward scale from one value to another."""
        return Scale(low=low, high=high, start=float(self.left), end=float(self.width - self.right))

    def upward(self, low: float, high: float) -> Scale:
        """Return the upward scale from one value to another."""
        return Scale(low=low, high=high, start=float(self.height - self.bottom), end=float(self.top))

    def picture(self, title: str, *parts: Markup) -> Markup:
        """Return the picture with a title for those who cannot see it."""
        return tag(
            "svg",
            tag("title", title),
            *parts,
            viewBox=f"0 0 {self.width} {self.height}",
            role="img",
            xmlns="http://www.w3.org/2000/svg",
        )

    def rows(self, scale: Scale, labels: Sequence[tuple[float, str]]) -> Markup:
        """Return a line across the picture and a label to its left for each (value, label)."""
        return joined(*(self._row(scale.place(value), label) for value, label in labels))

    def _row(self, place: float, label: str) -> Markup:
        line = tag("line", x1=self.left, x2=self.width - self.right, y1=place, y2=place, class_="grid")
        return joined(line, tag("text", label, x=self.left - 8, y=place + _FONT_HEIGHT, class_="end"))

    def columns(self, scale: Scale, labels: Sequence[tuple[float, str]], *, has_lines: bool = False) -> Markup:
        """Return a label below the picture for each (value, label), and a line through it if asked for."""
        return joined(*(self._column(scale.place(value), label, has_line=has_lines) for value, label in labels))

    def _column(self, place: float, label: str, *, has_line: bool) -> Markup:
        below = self.height - self.bottom
        line = tag("line", x1=place, x2=place, y1=self.top, y2=below, class_="grid") if has_line else Markup()
        return joined(line, tag("text", label, x=place, y=below + 16, class_="middle"))

    def name_across(self, name: str) -> Markup:
        """Return the name of the rightward axis, below its labels."""
        middle = (self.left + self.width - self.right) / 2
        return tag("text", name, x=middle, y=self.height - 8, class_="middle name")
