"""Ratios are taken within a round, everyone has their turn in every round."""

import pytest

from batchspec.bench.spread import alternate, ratios, spread


def test_a_spread_is_median_and_range() -> None:
    found = spread([5.0, 1.0, 3.0, 2.0, 9.0])
    assert (found.median, found.min, found.max) == (3.0, 1.0, 9.0)


def test_what_slows_down_a_whole_round_cancels_out() -> None:
    slow = [1.0, 1.0, 7.0, 1.0, 3.0]
    found = ratios([2.0 * factor for factor in slow], slow)
    assert (found.median, found.min, found.max) == (2.0, 2.0, 2.0)


def test_ratios_are_pairwise_and_not_of_medians() -> None:
    found = ratios([1.0, 4.0, 9.0], [1.0, 8.0, 3.0])
    assert (found.median, found.min, found.max) == (1.0, 0.5, 3.0)


def test_ratios_need_a_partner_each() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratios([1.0, 2.0], [1.0])


def test_contestants_take_turns_and_turn_round() -> None:
    order: list[str] = []
    rounds: list[int] = []

    def measure(name: str) -> int:
        order.append(name)
        return len(order)

    found = alternate({"a": lambda: measure("a"), "b": lambda: measure("b")}, rounds=3, on_round=rounds.append)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert found == {"a": [1, 4, 5], "b": [2, 3, 6]}
    assert rounds == [1, 2, 3]
