import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.report.positions import drafted_per_position, survivors

from .records import UNHURRIED


def test_survivors() -> None:
    assert survivors([39, 1, 0, 3]) == [4, 3, 3]
    assert survivors([5]) == []


@pytest.mark.parametrize(
    ("num_spec_steps", "num_draft_tokens", "num_spec_tokens", "per_step_drafted", "expected"),
    [
        pytest.param(3, 6, 3, [3, 1, 2], [3, 2, 1], id="per-step lengths"),
        pytest.param(3, 9, 3, None, [3, 3, 3], id="every draft full"),
        pytest.param(3, 5, 2, None, [3, 2], id="two positions"),
        pytest.param(3, 3, 1, None, [3], id="one position"),
        pytest.param(3, 6, 3, None, [3, None, None], id="not recorded"),
        pytest.param(0, 0, 3, None, [0, 0, 0], id="no step"),
        pytest.param(3, 6, 3, [3, 3], [3, None, None], id="lengths of other steps"),
    ],
)
def test_drafted_per_position(
    num_spec_steps: int,
    num_draft_tokens: int,
    num_spec_tokens: int,
    per_step_drafted: list[int] | None,
    expected: list[int | None],
) -> None:
    assert (
        drafted_per_position(
            num_spec_steps=num_spec_steps,
            num_draft_tokens=num_draft_tokens,
            num_spec_tokens=num_spec_tokens,
            per_step_drafted=per_step_drafted,
        )
        == expected
    )


@UNHURRIED
@given(st.integers(1, 6).flatmap(lambda k: st.tuples(st.just(k), st.lists(st.integers(1, k), max_size=20))))
def test_what_is_known_without_the_lengths_is_true(sample: tuple[int, list[int]]) -> None:
    num_spec_tokens, lengths = sample
    known = drafted_per_position(
        num_spec_steps=len(lengths), num_draft_tokens=sum(lengths), num_spec_tokens=num_spec_tokens
    )
    for position, number in enumerate(known):
        assert number is None or number == sum(length > position for length in lengths)
