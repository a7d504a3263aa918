"""The lane in which records wait for earlier ones."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batchspec.ordering import Lane


def lane_of(num: int, *, in_order: bool, most_held: int = 100) -> Lane:
    lane = Lane(in_order=in_order, most_held=most_held)
    for index in range(num):
        lane.open(index)
    return lane


def record(index: int) -> dict[str, Any]:
    return {"index": index}


@given(order=st.permutations(range(8)))
def test_records_leave_in_the_order_of_the_lines(order: list[int]) -> None:
    lane = lane_of(8, in_order=True)
    left: list[int] = []
    for num_done, index in enumerate(order, start=1):
        lane.close(index, record(index))
        left += [item["index"] for item in lane.ready()]
        done = set(order[:num_done])
        assert left == list(range(next((i for i in range(8) if i not in done), 8)))


@given(order=st.permutations(range(8)))
def test_records_leave_as_they_are_done(order: list[int]) -> None:
    lane = lane_of(8, in_order=False)
    left: list[int] = []
    for index in order:
        lane.close(index, record(index))
        left += [item["index"] for item in lane.ready()]
    assert left == order


def test_indices_may_have_gaps() -> None:
    lane = Lane(in_order=True, most_held=5)
    for index in (3, 7, 9):
        lane.open(index)
    lane.close(7, record(7))
    lane.close(3, record(3))
    assert [item["index"] for item in lane.ready()] == [3, 7]


def test_the_lane_is_full_while_the_head_is_missing() -> None:
    lane = lane_of(4, in_order=True, most_held=2)
    fullness = [lane.is_full]
    for index in (1, 2):
        lane.close(index, record(index))
        fullness.append(lane.is_full)
    assert list(lane.ready()) == []
    lane.close(0, record(0))
    assert [item["index"] for item in lane.ready()] == [0, 1, 2]
    assert [*fullness, lane.is_full] == [False, False, True, False]
