"""Three kinds of pictures: bars, curves and intervals; every mark tells its numbers when pointed at."""

from collections.abc import Sequence
from dataclasses import dataclass

from batchspec.report.pictures.frame import Frame
from batchspec.report.pictures.markup import Markup, joined, tag
from batchspec.report.pictures.scale import Scale, round_ticks

__all__ = ["Mark", "Series", "bar_chart", "curve_chart", "interval_chart", "legend"]

_BAR_SHARE = 0.72
_ROW_HEIGHT = 30
_LABEL_LENGTH = 26
_MAX_LABELS = 16


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One value in a picture.

    Attributes:
        label: its place on the axis, in words.
        value: where it stands.
        tip: what it tells when pointed at.
        low: lower end of its interval; None where there is none.
        high: upper end.
        at: its place along the rightward axis of a curve.
    """

    label: str
    value: float
    tip: str
    low: float | None = None
    high: float | None = None
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Series:
    """Marks of one kind.

    Attributes:
        name: for the legend.
        marks: from left to right, or from top to bottom.
    """

    name: str
    marks: Sequence[Mark]


def bar_chart(title: str, marks: Sequence[Mark], *, across: str) -> Markup:
    """Return a bar for each mark, from zero.

    Args:
        title: of the picture.
        marks: with values of at least 0.
        across: name of the rightward axis.
    """
    frame, ticks = Frame(), round_ticks(0.0, max(mark.value for mark in marks))
    upward, scale = frame.upward(ticks[0], ticks[-1]), frame.across(-0.5, len(marks) - 0.5)
    width = (scale.place(1) - scale.place(0)) * _BAR_SHARE
    bars = (
        tag(
            "rect",
            x=scale.place(index) - width / 2,
            y=upward.place(mark.value),
            width=width,
            height=upward.place(0) - upward.place(mark.value),
            class_="bar",
        )
        for index, mark in enumerate(marks)
    )
    every = -(-len(marks) // _MAX_LABELS)
    labels = [(float(index), mark.label) for index, mark in enumerate(marks) if index % every == 0]
    return frame.picture(
        title,
        frame.rows(upward, [(tick, f"{tick:,g}") for tick in ticks]),
        *(tag("g", tag("title", mark.tip), bar) for mark, bar in zip(marks, bars, strict=True)),
        frame.columns(scale, labels),
        frame.name_across(across),
    )


def curve_chart(title: str, series: Sequence[Series], *, across: str, is_share: bool = False) -> Markup:
    """Return a curve for each series, with the intervals of its marks.

    Args:
        title: of the picture.
        series: at least one mark in all of them.
        across: name of the rightward axis.
        is_share: whether the values are shares of one, shown in per cent from 0 to 100.
    """
    frame = Frame()
    marks = [mark for one in series for mark in one.marks]
    ticks = [index / 5 for index in range(6)] if is_share else round_ticks(1.0, _highest(marks))
    upward = frame.upward(ticks[0], ticks[-1])
    places = sorted({(mark.at, mark.label) for mark in marks})
    margin = (places[-1][0] - places[0][0] or 1.0) / (2 * len(places))
    scale = frame.across(places[0][0] - margin, places[-1][0] + margin)
    every = -(-len(places) // _MAX_LABELS)
    return frame.picture(
        title,
        frame.rows(upward, [(tick, f"{tick:.0%}" if is_share else f"{tick:g}") for tick in ticks]),
        *(_curve(one, index, scale, upward) for index, one in enumerate(series)),
        frame.columns(scale, places[::every]),
        frame.name_across(across),
    )


def _curve(series: Series, index: int, across: Scale, upward: Scale) -> Markup:
    points = " ".join(f"{across.place(mark.at):.1f},{upward.place(mark.value):.1f}" for mark in series.marks)
    marks = (_upright(mark, across.place(mark.at), upward) for mark in series.marks)
    return tag("g", tag("polyline", points=points, class_="curve"), *marks, class_=f"series{index}")


def _upright(mark: Mark, place: float, upward: Scale) -> Markup:
    """Return a dot with its interval above and below it."""
    dot = tag("circle", cx=place, cy=upward.place(mark.value), r=3.5, class_="dot")
    if mark.low is None or mark.high is None:
        return tag("g", tag("title", mark.tip), dot)
    reach = tag("line", x1=place, x2=place, y1=upward.place(mark.low), y2=upward.place(mark.high), class_="reach")
    return tag("g", tag("title", mark.tip), reach, dot)


def interval_chart(title: str, series: Sequence[Series], *, across: str) -> Markup:
    """Return a row for each label, with a dot and its interval from every series.

    Args:
        title: of the picture.
        series: all with marks for the same labels, in the same order.
        across: name of the rightward axis.
    """
    labels = [mark.label for mark in series[0].marks]
    marks = [mark for one in series for mark in one.marks]
    ticks = round_ticks(min(_lowest(marks), 1.0), _highest(marks))
    frame = Frame(left=180, height=_ROW_HEIGHT * len(labels) + 62)
    scale, upward = frame.across(ticks[0], ticks[-1]), frame.upward(len(labels) - 0.5, -0.5)
    return frame.picture(
        title,
        frame.columns(scale, [(tick, f"{tick:g}") for tick in ticks], has_lines=True),
        frame.rows(upward, [(float(row), _shortened(label)) for row, label in enumerate(labels)]),
        *(_row_marks(one, index, scale, upward) for index, one in enumerate(series)),
        frame.name_across(across),
    )


def _row_marks(series: Series, index: int, across: Scale, upward: Scale) -> Markup:
    marks = (_level(mark, upward.place(row) + 8.0 * index - 4.0, across) for row, mark in enumerate(series.marks))
    return tag("g", *marks, class_=f"series{index}")


def _level(mark: Mark, place: float, across: Scale) -> Markup:
    """Return a dot with its interval to its left and right."""
    dot = tag("circle", cx=across.place(mark.value), cy=place, r=3.5, class_="dot")
    if mark.low is None or mark.high is None:
        return tag("g", tag("title", mark.tip), dot)
    reach = tag("line", x1=across.place(mark.low), x2=across.place(mark.high), y1=place, y2=place, class_="reach")
    return tag("g", tag("title", mark.tip), reach, dot)


def _lowest(marks: Sequence[Mark]) -> float:
    return min(mark.value if mark.low is None else mark.low for mark in marks)


def _highest(marks: Sequence[Mark]) -> float:
    return max(mark.value if mark.high is None else mark.high for mark in marks)


def _shortened(label: str) -> str:
    return label if len(label) <= _LABEL_LENGTH else f"…{label[-_LABEL_LENGTH + 1 :]}"


def legend(series: Sequence[Series]) -> Markup:
    """Return the names of the series, each behind its colour."""
    return joined(*(tag("span", tag("i"), one.name, class_=f"series{index}") for index, one in enumerate(series)))
