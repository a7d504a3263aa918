from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.files import FinishedIndices, record_index

INDICES = st.integers(0, 40) | st.integers(65_530, 65_545) | st.integers(0, 10**17)


@given(st.lists(INDICES, max_size=60), INDICES)
def test_it_behaves_like_a_set(indices: list[int], probe: int) -> None:
    finished, model = FinishedIndices(), set(indices)
    for index in indices:
        finished.add(index)
    assert len(finished) == len(model)
    assert all(index in finished for index in model)
    assert (probe in finished) == (probe in model)
    assert -1 not in finished


@given(st.permutations(range(200)))
def test_a_range_in_any_order_ends_as_a_count(order: list[int]) -> None:
    finished = FinishedIndices()
    for index in order:
        finished.add(index)
    assert len(finished) == 200
    assert 199 in finished
    assert 200 not in finished


def test_blocks_are_dropped_when_the_prefix_has_passed_them() -> None:
    finished = FinishedIndices()
    for index in range(1, 200_000):
        finished.add(index)
    finished.add(0)
    assert len(finished) == 200_000
    assert len(finished._blocks) <= 1


@pytest.mark.parametrize(
    ("record", "index"),
    [
        ({"id": "batch_req_00000007"}, 7),
        ({"id": "batch_req_1234567890"}, 1234567890),
        ({"id": "batch_req_7"}, None),
        ({"id": "batch_req_00000007x"}, None),
        ({"id": "batch_req_-0000007"}, None),
        ({"id": 7}, None),
        ({}, None),
    ],
)
def test_the_index_of_a_record(record: dict[str, Any], index: int | None) -> None:
    assert record_index(record) == index
