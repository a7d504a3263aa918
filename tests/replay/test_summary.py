"""Ratios, means, intervals and the best setting, against fractions and draws made the slow way."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.replay.ratios import SPEEDUP, Sums, drawn_ratios, ratios
from batchspec.replay.summary import Slice, summarise
from batchspec.report.logs.bootstrap import NUM_RESAMPLES

from .logs import config_of, replayed, write_log

STEPS, DRAFTED, ACCEPTED, DECODES, UNDECIDED = range(5)
counts = st.tuples(st.integers(0, 9), st.integers(0, 30), st.integers(0, 20), st.integers(0, 40), st.just(0))


def sums_of(rows: Any, later: list[int], seconds: Any = None) -> Sums:
    return Sums(
        counts=np.array(rows, dtype=np.int32),
        num_later_tokens=np.array(later, dtype=np.int64),
        seconds=None if seconds is None else np.array(seconds, dtype=np.float64),
    )


def slice_of(sums: Sums, *, methods: list[str], lengths: list[int]) -> Slice:
    shape = (2, len(lengths), max(lengths) + 1)
    return Slice(each=sums, histograms=np.zeros(shape, dtype=np.int64), methods=methods, lengths=lengths)


@settings(max_examples=50)
@given(rows=st.lists(st.tuples(counts, counts), min_size=1, max_size=6), later=st.integers(0, 60))
def test_pooled_ratios_are_quotients_of_sums(rows: list[tuple[Any, Any]], later: int) -> None:
    sums = sums_of([list(row) for row in rows], [later] * len(rows))
    pooled = summarise(slice_of(sums, methods=["a", "b"], lengths=[2, 3]))["cells"]
    for setting, cell in enumerate(pooled):
        total = [sum(row[setting][column] for row in rows) for column in range(5)]
        expected = {
            "mean_acceptance_length": total[STEPS] and 1 + Fraction(total[ACCEPTED], total[STEPS]),
            "draft_acceptance_rate": total[DRAFTED] and Fraction(total[ACCEPTED], total[DRAFTED]),
            "tokens_per_decode_step": total[DECODES] and Fraction(later * len(rows), total[DECODES]),
            "steps_saved": later and 1 - Fraction(total[DECODES], later * len(rows)),
        }
        denominators = (total[STEPS], total[DRAFTED], total[DECODES], later)
        for (name, value), denominator in zip(expected.items(), denominators, strict=True):
            found = cell["pooled"][name]
            assert found == (pytest.approx(float(value), abs=1e-12) if denominator else None), name
        assert cell["pooled"]["num_spec_steps"] == total[STEPS]
        assert cell["pooled"]["num_discarded_tokens"] == total[DECODES] + total[ACCEPTED] - later * len(rows)


def test_the_mean_leaves_out_requests_without_a_step() -> None:
    sums = sums_of([[(2, 4, 1, 5, 0)], [(0, 0, 0, 7, 0)], [(1, 2, 2, 3, 0)]], [6, 7, 5])
    (cell,) = summarise(slice_of(sums, methods=["a"], lengths=[2]))["cells"]
    assert cell["mean_over_requests"] == {
        "mean_acceptance_length": (1.5 + 3.0) / 2,
        "draft_acceptance_rate": (0.25 + 1.0) / 2,
        "tokens_per_decode_step": (6 / 5 + 5 / 3) / 2,
        "num_requests": 2,
        "num_requests_without_step": 1,
    }


def test_draws_are_of_whole_requests_and_the_same_for_every_setting() -> None:
    """With one request in a hundred unlike the others, a draw tells how often it was drawn, for all settings."""
    rows = [[(1, 1, 0, 1, 0), (1, 1, 0, 1, 0)] for _ in range(100)]
    rows[7] = [(1, 1, 1, 1, 0), (1, 1, 1, 1, 0)]
    drawn = drawn_ratios(sums_of(rows, [1] * 100))["mean_acceptance_length"]
    assert drawn.shape == (NUM_RESAMPLES, 2)
    assert (drawn[:, 0] == drawn[:, 1]).all()
    times = np.rint((drawn[:, 0] - 1) * 100)
    np.testing.assert_allclose(drawn[:, 0], 1 + times / 100)
    # Binomial(100, 0.01): none in 0.366 of the draws; off by 0.054, five standard errors, once in about two million.
    assert (times == 0).mean() == pytest.approx(0.366, abs=0.054)


def test_the_interval_has_the_width_that_it_must_have() -> None:
    """For a mean of independent values the interval is 1.96 standard errors to each side."""
    generator = np.random.default_rng(1)
    accepted = generator.binomial(100, 0.5, size=400)
    sums = sums_of([[(100, 300, int(number), 100, 0)] for number in accepted], [100] * 400)
    (cell,) = summarise(slice_of(sums, methods=["a"], lengths=[3]))["cells"]
    low, high = cell["intervals"]["mean_acceptance_length"]
    error = accepted.std() / 100 / np.sqrt(400)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.15)
    assert low < cell["pooled"]["mean_acceptance_length"] < high


def test_a_single_request_says_nothing_about_others() -> None:
    summary = summarise(slice_of(sums_of([[(1, 1, 1, 1, 0)]], [2]), methods=["a"], lengths=[1]))
    assert set(summary["cells"][0]["intervals"].values()) == {None}
    assert (summary["best"]["interval"], summary["best"]["share_of_draws"], summary["best"]["next"]) == (None,) * 3


def test_the_best_is_the_one_with_most_tokens_a_step_and_of_as_good_ones_the_one_that_drafts_least() -> None:
    row = [(5, 9, 4, 10, 0), (5, 15, 6, 8, 0), (5, 12, 6, 8, 0), (5, 10, 5, 9, 0)]
    summary = summarise(slice_of(sums_of([row] * 5, [14] * 5), methods=["a", "a", "a", "b"], lengths=[1, 3, 2, 4]))
    best = summary["best"]
    assert (best["criterion"], best["method"], best["num_spec_tokens"]) == ("tokens_per_decode_step", "a", 2)
    assert best["value"] == 14 / 8
    assert (best["interval"], best["share_of_draws"]) == ((14 / 8, 14 / 8), 1.0)
    assert (best["next"]["method"], best["next"]["num_spec_tokens"]) == ("b", 4)
    assert best["next"]["difference"] == pytest.approx(14 / 8 - 14 / 9)


def test_with_times_the_fastest_is_best() -> None:
    rows = [[(5, 9, 4, 10, 0), (5, 15, 6, 8, 0)]] * 3
    sums = sums_of(rows, [14] * 3, seconds=[[1.0, 2.0, 1.5]] * 3)
    np.testing.assert_allclose(ratios(sums)[SPEEDUP], [[1.5, 0.75]] * 3)
    best = summarise(slice_of(sums, methods=["a", "b"], lengths=[1, 3]))["best"]
    assert (best["criterion"], best["method"], best["value"]) == (SPEEDUP, "a", 1.5)
    assert best["next"]["difference"] == 0.75


def test_settings_without_a_step_have_no_best() -> None:
    summary = summarise(slice_of(sums_of([[(0, 0, 0, 0, 0)]] * 2, [0, 0]), methods=["a"], lengths=[1]))
    assert summary["best"] is None
    assert summary["cells"][0]["pooled"]["mean_acceptance_length"] is None


def row_of(index: int, category: str | None) -> dict[str, Any]:
    output = [1, 2, 3] * (2 + index % 3) if category != "hard" else list(range(10, 20 + index))
    body = {"choices": [{"text": "", "token_ids": output, "prompt_token_ids": [1]}]}
    row: dict[str, Any] = {"id": f"batch_req_{index:08d}", "custom_id": f"r{index}", "response": {"body": body}}
    return row if category is None else row | {"category": category}


def test_categories_add_up_to_the_whole(tmp_path: Path) -> None:
    rows = [row_of(index, ("easy", "hard", None)[index % 3]) for index in range(12)]
    configs = [config_of("ngram", k, prompt_lookup_min=1) for k in (1, 4)]
    document = replayed(write_log(tmp_path / "log.jsonl", rows), configs=configs)
    alone = replayed(write_log(tmp_path / "none.jsonl", rows[2::3]), configs=configs)
    parts = [*document["categories"].values(), alone["all"]]
    assert list(document["categories"]) == ["easy", "hard"]
    assert sum(part["num_requests"] for part in parts) == document["all"]["num_requests"] == 12
    for setting in range(2):
        whole = document["all"]["cells"][setting]["pooled"]
        cells = [part["cells"][setting]["pooled"] for part in parts]
        for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "num_decode_steps"):
            assert whole[name] == sum(cell[name] for cell in cells) > 0
        histograms = [cell["acceptance_histogram"] for cell in cells]
        assert whole["acceptance_histogram"] == [sum(each) for each in zip(*histograms, strict=True)]
        assert sum(whole["acceptance_histogram"]) == whole["num_spec_steps"]
    assert alone["categories"] == {}


def test_positions_are_counted_from_both_histograms(tmp_path: Path) -> None:
    rows = [row_of(index, None) for index in range(3)]
    document = replayed(write_log(tmp_path / "log.jsonl", rows), configs=[config_of("ngram", 4, prompt_lookup_min=1)])
    (cell,) = document["all"]["cells"]
    positions = cell["per_position"]
    assert sum(entry["num_accepted"] for entry in positions) == cell["pooled"]["num_accepted_draft_tokens"]
    assert sum(entry["num_drafted"] for entry in positions) == cell["pooled"]["num_draft_tokens"]
    assert positions[0]["num_drafted"] == cell["pooled"]["num_spec_steps"]
