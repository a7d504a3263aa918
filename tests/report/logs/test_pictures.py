import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.report.pictures.charts import Mark, Series, bar_chart, curve_chart, interval_chart
from batchspec.report.pictures.markup import Markup, joined, tag
from batchspec.report.pictures.scale import Scale, round_ticks


def test_what_is_no_markup_is_escaped() -> None:
    assert tag("b", "<i>", class_='"x"') == '<b class="&quot;x&quot;">&lt;i&gt;</b>'
    assert tag("b", tag("i"), joined("<", tag("u", 5))) == "<b><i></i>&lt;<u>5</u></b>"
    assert tag("line", x1=1.25, y_two=None) == '<line x1="1.2"/>'
    assert isinstance(tag("b") + "", str)
    assert not isinstance(tag("b") + "<", Markup)


def test_a_scale_places_both_ends() -> None:
    scale = Scale(low=1.0, high=3.0, start=200.0, end=0.0)
    assert [scale.place(value) for value in (1.0, 2.0, 3.0)] == [200.0, 100.0, 0.0]


@given(low=st.floats(-1e6, 1e6), span=st.floats(0, 1e6))
def test_ticks_enclose_the_values_and_are_few(low: float, span: float) -> None:
    ticks = round_ticks(low, low + span)
    tolerance = 1e-6 * (ticks[1] - ticks[0])
    assert ticks[0] <= low + tolerance
    assert ticks[-1] >= low + span - tolerance
    assert 2 <= len(ticks) <= 9


@pytest.mark.parametrize(("low", "high", "expected"), [(0, 9, [0, 2, 4, 6, 8, 10]), (1, 1, [1, 1.2]), (0, 0, [0, 0.2])])
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert round_ticks(low, high) == pytest.approx(expected)


MARKS = [Mark(label="a", value=1.5, tip="a: 1.5", low=1.2, high=1.9), Mark(label="b", value=2.5, tip="b: 2.5", at=1.0)]


def test_bars_stand_on_the_axis_and_reach_their_value() -> None:
    picture = bar_chart("t", [Mark(label="0", value=0.0, tip=""), Mark(label="1", value=10.0, tip="")], across="x")
    assert 'height="0.0"' in picture
    assert 'y="14.0"' in picture


def test_an_interval_is_drawn_where_there_is_one() -> None:
    series = [Series(name="s", marks=MARKS)]
    for picture in (curve_chart("t", series, across="x"), interval_chart("t", series, across="x")):
        assert picture.count('class="reach"') == 1
        assert picture.count('class="dot"') == 2
        assert "a: 1.5" in picture


def test_one_mark_alone_is_drawn() -> None:
    assert 'class="dot"' in curve_chart("t", [Series(name="s", marks=MARKS[:1])], across="x", is_share=False)


def test_long_labels_keep_their_end() -> None:
    mark = Mark(label="x" * 40 + "/end.jsonl", value=1.5, tip="")
    assert "…" in interval_chart("t", [Series(name="s", marks=[mark])], across="x")
    assert "/end.jsonl" in interval_chart("t", [Series(name="s", marks=[mark])], across="x")
