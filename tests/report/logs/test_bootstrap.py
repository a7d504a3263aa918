"""Intervals: repeatable, about the right width, and over requests, not over steps."""

import random
from pathlib import Path

import numpy as np
import pytest

from batchspec.report.logs.bootstrap import (
    MAX_UNITS,
    NUM_RESAMPLES,
    assign_units,
    interval,
    resampled_ratios,
)

from .made import report_of, request


def test_the_same_log_gives_the_same_interval(tmp_path: Path) -> None:
    rows = [request([index % 5, 2, 1]) for index in range(30)]
    assert report_of(tmp_path, rows)["overall"] == report_of(tmp_path, rows)["overall"]


def test_one_request_has_no_interval(tmp_path: Path) -> None:
    measure = report_of(tmp_path, [request([1, 2, 3])])["overall"]["pooled"]["mean_acceptance_length"]
    assert (measure["value"], measure["low"], measure["high"]) == (3.0, None, None)


def test_requests_that_are_all_alike_have_an_interval_of_no_width(tmp_path: Path) -> None:
    measure = report_of(tmp_path, [request([1, 3])] * 9)["overall"]["pooled"]["mean_acceptance_length"]
    assert measure["low"] == measure["value"] == measure["high"] == 3.0


def test_the_width_is_that_of_a_mean_over_requests() -> None:
    """Of n values with deviation s, the middle 95 % of the resampled means reach 1.96 s / sqrt(n) to each side.

    The ends of 2,000 resamples are off by about 3 % (one deviation); 15 % is five of these.
    """
    generator = np.random.default_rng(7)
    values = generator.normal(3.0, 1.0, size=400)
    draws = resampled_ratios(values[:, None], np.ones((400, 1)), generator)[:, 0]
    low, high = interval(draws) or (0.0, 0.0)
    reach = 1.96 * values.std() / 20
    assert values.mean() - low == pytest.approx(reach, rel=0.15)
    assert high - values.mean() == pytest.approx(reach, rel=0.15)


def test_groups_of_requests_give_the_interval_that_requests_give() -> None:
    """Six times as many requests as units: again 1.96 s / sqrt(n), which units of other sizes would miss."""
    generator = np.random.default_rng(8)
    number = 6 * MAX_UNITS
    values = generator.exponential(2.0, size=number)
    units = assign_units(number, generator)
    assert set(np.bincount(units).tolist()) == {6}
    above, below = np.bincount(units, weights=values).astype(float), np.bincount(units).astype(float)
    draws = resampled_ratios(above[:, None], below[:, None], generator)[:, 0]
    low, high = interval(draws) or (0.0, 0.0)
    reach = 1.96 * values.std() / number**0.5
    assert (high - low) / 2 == pytest.approx(reach, rel=0.15)


def test_groups_are_random_so_that_rows_in_turn_do_not_hide_the_spread() -> None:
    generator = np.random.default_rng(9)
    number = 4 * MAX_UNITS
    values = np.arange(number) % 4.0  # every four neighbours add up to the same
    units = assign_units(number, generator)
    assert np.bincount(units, weights=values).std() > 1


def test_a_long_request_weighs_in_pooled_numbers_only(tmp_path: Path) -> None:
    """Sixty-four short requests and a long one: drawing the long one or not moves the pooled length, not the mean."""
    generator = random.Random(1)
    rows = [request([generator.randrange(5) for _ in range(8)]) for _ in range(64)]
    overall = report_of(tmp_path, [*rows, request([0] * 2000)])["overall"]
    pooled, mean = (overall[name]["mean_acceptance_length"] for name in ("pooled", "mean_over_requests"))
    assert pooled["high"] - pooled["low"] > 3 * (mean["high"] - mean["low"])


def test_resamples_that_have_nothing_to_divide_by_are_left_out() -> None:
    generator = np.random.default_rng(3)
    draws = resampled_ratios(np.array([[2.0], [0.0]]), np.array([[1.0], [0.0]]), generator)[:, 0]
    assert len(draws) == NUM_RESAMPLES
    assert np.isnan(draws).mean() == pytest.approx(0.25, abs=0.05)
    assert interval(draws) == (2.0, 2.0)
    assert interval(np.full(3, np.nan)) is None


def test_the_interval_says_how_it_was_made(tmp_path: Path) -> None:
    document = report_of(tmp_path, [request([1])])
    assert document["bootstrap"] == {
        "num_resamples": 2000,
        "seed": 0,
        "confidence": 0.95,
        "drawn": "requests",
        "max_units": 2048,
    }
    assert "2,000 draws" in document["definitions"]["interval"]
