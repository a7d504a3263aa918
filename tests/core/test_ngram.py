"""Prompt lookup against a naive reading of its rules."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from batchspec.drafting import NgramDrafter
from batchspec.drafting.ngram import lookup

from .sequences import decoding


def naive(tokens: list[int], *, min_length: int, max_length: int, num_tokens: int) -> list[int]:
    """The rules word for word: longest suffix, earliest occurrence, what followed it."""
    for length in range(max_length, min_length - 1, -1):
        suffix = tokens[len(tokens) - length :]
        for start in range(len(tokens) - length):
            if tokens[start : start + length] == suffix:
                return tokens[start + length : start + length + num_tokens]
    return []


def found(tokens: list[int], low: int, high: int, num_tokens: int) -> list[int]:
    return lookup(np.array(tokens, dtype=np.int64), min_length=low, max_length=high, num_tokens=num_tokens)[0]


@given(
    tokens=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    low=st.integers(1, 4),
    extra=st.integers(0, 4),
    num_tokens=st.integers(1, 6),
)
@example(tokens=[1], low=1, extra=0, num_tokens=3)
@example(tokens=[1, 1], low=1, extra=4, num_tokens=3)
def test_equals_the_naive_search(tokens: list[int], low: int, extra: int, num_tokens: int) -> None:
    expected = naive(tokens, min_length=low, max_length=low + extra, num_tokens=num_tokens)
    assert found(tokens, low, low + extra, num_tokens) == expected


@pytest.mark.parametrize(
    ("tokens", "low", "high", "expected"),
    [
        pytest.param([1, 2, 3, 9, 1, 2], 1, 2, [3, 9, 1], id="what followed"),
        pytest.param([5, 2, 7, 1, 2, 8, 1, 2], 1, 2, [8, 1, 2], id="longest beats earliest"),
        pytest.param([2, 7, 7, 2, 8, 8, 2], 1, 3, [7, 7, 2], id="earliest of equal length"),
        pytest.param([4, 4, 4], 1, 2, [4], id="occurrence may overlap the suffix"),
        pytest.param([1, 2, 3], 1, 3, [], id="nothing repeats"),
        pytest.param([1, 2, 9, 2], 2, 3, [], id="repeat too short"),
        pytest.param([7, 1, 7], 1, 5, [1, 7], id="longer than the text"),
    ],
)
def test_rules(tokens: list[int], low: int, high: int, expected: list[int]) -> None:
    assert found(tokens, low, high, 3) == expected


def test_prompt_and_output_are_searched_alike() -> None:
    drafter = NgramDrafter(num_spec_tokens=2, prompt_lookup_min=1, prompt_lookup_max=2)
    sequence = decoding([8, 9, 10, 8])
    assert drafter.propose([sequence])[0].token_ids == [9, 10]
    sequence.append([77, 8, 77])
    assert drafter.propose([sequence])[0].token_ids == [8, 77]


def test_tokens_behind_the_end_of_the_buffer_are_not_read() -> None:
    """The buffer is longer than the text; its zeros are no tokens."""
    drafter = NgramDrafter(num_spec_tokens=3, prompt_lookup_min=1, prompt_lookup_max=1)
    assert drafter.propose([decoding([0, 5, 0])])[0].token_ids == [5, 0]
    assert drafter.propose([decoding([3, 5, 6])]) == []
