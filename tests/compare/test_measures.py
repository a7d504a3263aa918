"""What is compared is what reports of the two runs say, over the requests that both served."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.compare.bootstrap import paired_intervals
from batchspec.compare.comparing import compare_runs
from batchspec.compare.measures import Measure, Pair, all_measures
from batchspec.compare.sides import Numbers
from batchspec.report import Aggregate

from .making import answer, write_run

Steps = list[tuple[int, int]]


def found(document: dict[str, Any], name: str, weighting: str = "pooled", detail: str | None = None) -> dict[str, Any]:
    (measure,) = [
        one
        for one in document["measures"]
        if (one["name"], one["weighting"], one["detail"]) == (name, weighting, detail)
    ]
    return dict(measure)


def test_the_test_vector(tmp_path: Path) -> None:
    """The two requests of the worked example against the same with one step less accepted."""
    first = [[(4, n) for n in (2, 3, 1, 4, 2, 0, 3, 3)], [(4, n) for n in (1, 1, 0)]]
    second = [first[0], [(4, 1), (4, 0), (4, 0)]]
    a = write_run(tmp_path / "a.jsonl", [answer(str(i), steps, k=4) for i, steps in enumerate(first)])
    b = write_run(tmp_path / "b.jsonl", [answer(str(i), steps, k=4) for i, steps in enumerate(second)])
    document = compare_runs(a, b)
    pooled = found(document, "mean_acceptance_length")
    assert pooled["a"]["value"] == 1 + 20 / 11
    assert pooled["b"]["value"] == 1 + 19 / 11
    assert pooled["difference"]["value"] == pytest.approx(-1 / 11)
    assert pooled["ratio"]["value"] == (1 + 19 / 11) / (1 + 20 / 11)
    mean = found(document, "mean_acceptance_length", "mean_over_requests")
    assert mean["a"]["value"] == pytest.approx((3.25 + 1 + 2 / 3) / 2)
    assert found(document, "draft_acceptance_rate")["a"]["value"] == 20 / 44
    assert found(document, "draft_acceptance_rate", "mean_over_requests")["a"]["value"] == (18 / 32 + 2 / 12) / 2
    assert found(document, "marginal_rate", detail="0")["a"]["value"] == 9 / 11
    assert found(document, "marginal_rate", detail="3")["b"]["value"] == 1 / 11
    assert pooled["num_pairs"] == 2


RUNS = st.lists(
    st.lists(
        st.integers(1, 3).flatmap(lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted))), max_size=5
    ),
    min_size=1,
    max_size=6,
)


@given(RUNS)
def test_both_columns_are_what_the_aggregate_of_that_run_says(runs: list[Steps]) -> None:
    pairs = [Pair(custom_id=str(i), numbers=(numbers(steps), numbers(steps[1:]))) for i, steps in enumerate(runs)]
    for side in (0, 1):
        aggregate = Aggregate()
        for i, steps in enumerate(runs):
            aggregate.add(answer(str(i), steps[side:]))
        acceptance = aggregate.document()["acceptance"]
        for measure in all_measures(pairs):
            if measure.name in ("mean_acceptance_length", "draft_acceptance_rate"):
                expected = acceptance[measure.weighting][measure.name]
                value = measure.values[side]
                assert (value is None and expected is None) or math.isclose(value or 0, expected)
            elif measure.name == "marginal_rate":
                assert measure.values[side] == acceptance["per_position"][int(measure.detail or 0)]["marginal_rate"]


def numbers(steps: Steps) -> Numbers:
    accepted = [taken for _, taken in steps]
    return Numbers(
        line=1,
        steps=len(steps),
        drafted=sum(given for given, _ in steps),
        accepted=sum(accepted),
        accepted_at=tuple(sum(taken > i for taken in accepted) for i in range(3)),
    )


def test_a_pair_that_one_run_does_not_tell_takes_no_part(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a.jsonl", [answer("1", [(3, 3)]), answer("2", [(3, 0)]), answer("3", [(3, 1)])])
    b = write_run(tmp_path / "b.jsonl", [answer("1", [(3, 3)]), answer("2", None), answer("3", [(3, 1)])])
    pooled = found(compare_runs(a, b), "mean_acceptance_length")
    assert (pooled["a"]["value"], pooled["b"]["value"], pooled["num_pairs"]) == (3.0, 3.0, 2)


def test_requests_without_a_step_weigh_nothing_in_the_mean(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a.jsonl", [answer("1", [(3, 3)]), answer("2", [])])
    b = write_run(tmp_path / "b.jsonl", [answer("1", [(3, 3)]), answer("2", [(3, 1)])])
    mean = found(compare_runs(a, b), "mean_acceptance_length", "mean_over_requests")
    assert (mean["a"]["value"], mean["b"]["value"]) == (4.0, 3.0)


def test_categories_equal_texts_and_the_honest_length(tmp_path: Path) -> None:
    beside = {"num_decode_steps": 4, "num_discarded_tokens": 1}

    def run(name: str, text: str) -> str:
        return write_run(
            tmp_path / name,
            [
                answer("1", [(3, 3)], category="code", tokens=7, beside=beside),
                answer(
                    "2", [(3, 1)], category="chat", texts=[text], tokens=5, beside=beside | {"num_discarded_tokens": 1}
                ),
            ],
        )

    document = compare_runs(run("a.jsonl", "yes"), run("b.jsonl", "no"))
    assert found(document, "mean_acceptance_length", detail="category code")["a"]["value"] == 4.0
    assert found(document, "mean_acceptance_length", detail="category chat")["num_pairs"] == 1
    assert found(document, "mean_acceptance_length", detail="equal texts")["b"]["value"] == 4.0
    assert found(document, "tokens_per_decode_step")["a"]["value"] == (6 + 4) / 8


def test_a_category_has_every_number_that_all_have(tmp_path: Path) -> None:
    """They are what a comparison of its requests alone says."""
    first, second = ([(3, 3), (3, 1)], [(3, 0)]), ([(3, 2)], [(3, 1), (2, 2)])

    def runs(name: str, *, only_code: bool) -> str:
        rows = [
            answer(
                f"{place}{i}",
                steps,
                category=category,
                beside={"num_decode_steps": len(steps), "num_discarded_tokens": 0},
                tokens=1 + len(steps) + sum(accepted for _, accepted in steps),
            )
            for i, steps in enumerate(first if name == "a" else second)
            for place, category in (("x", "code"), ("y", "code"), ("z", "chat"))
            if category == "code" or not only_code
        ]
        return write_run(tmp_path / f"{name}{only_code}.jsonl", rows)

    whole = compare_runs(runs("a", only_code=False), runs("b", only_code=False))
    alone = compare_runs(runs("a", only_code=True), runs("b", only_code=True))
    of_code = [one for one in whole["measures"] if (one["detail"] or "").startswith("category code")]
    expected = [one for one in alone["measures"] if not (one["detail"] or "").startswith("category")]
    assert len(of_code) == len(expected) == 9
    for one, other in zip(of_code, expected, strict=True):
        position = "" if other["detail"] is None else f", position {other['detail']}"
        assert one["detail"] == f"category code{position}"
        assert (one["name"], one["weighting"], one["num_pairs"]) == (other["name"], other["weighting"], 4)
        assert [one[run]["value"] for run in ("a", "b")] == [other[run]["value"] for run in ("a", "b")]


def test_times_are_pooled_over_the_gaps(tmp_path: Path) -> None:
    def run(name: str, factor: float) -> str:
        times = [(20.0, 90.0, 10), (40.0, 400.0, 5), (10.0, 0.0, 1)]
        rows = [
            answer(str(i), timing={"time_to_first_token_ms": first, "generation_time_ms": rest * factor}, tokens=tokens)
            for i, (first, rest, tokens) in enumerate(times)
        ]
        return write_run(tmp_path / name, rows)

    document = compare_runs(run("a.jsonl", 1.0), run("b.jsonl", 0.5))
    gap = found(document, "ms_per_output_token")
    assert gap["a"]["value"] == pytest.approx(490 / 13)
    assert gap["ratio"]["value"] == pytest.approx(0.5)
    assert gap["ratio"]["low"] == pytest.approx(0.5)
    assert found(document, "time_to_first_token_ms", "mean_over_requests")["a"]["value"] == pytest.approx(70 / 3)


def measure(first: list[float], second: list[float]) -> Measure:
    tops = np.array([first, second])
    return Measure(name="x", places=np.arange(len(first)), numerators=tops, denominators=np.ones_like(tops))


def test_a_constant_difference_is_certain_although_the_values_are_not() -> None:
    """The runs are paired: what a request does in both cancels out."""
    values = [float(i) for i in range(30)]
    (intervals,) = paired_intervals([measure(values, [value + 1 for value in values])], num_pairs=30)
    assert intervals.difference == pytest.approx((1.0, 1.0))
    low, high = intervals.runs[0] or (0, 0)
    assert high - low > 4


def test_the_interval_covers_the_true_difference_about_as_often_as_it_says() -> None:
    """95 per cent of 200 experiments; below 178 or above 199 happens by chance less than once in 1,000 times."""
    generator = np.random.default_rng(7)
    covered = 0
    for _ in range(200):
        first = generator.normal(5, 2, size=80)
        second = first + generator.normal(0.3, 1, size=80)
        (intervals,) = paired_intervals([measure(list(first), list(second))], num_pairs=80)
        low, high = intervals.difference or (0.0, 0.0)
        covered += low <= 0.3 <= high
    assert 178 <= covered <= 199


def test_intervals_repeat_and_one_pair_has_none() -> None:
    measures = [measure([1.0, 5.0, 2.0], [2.0, 3.0, 9.0])]
    assert paired_intervals(measures, num_pairs=3) == paired_intervals(measures, num_pairs=3)
    (alone,) = paired_intervals([measure([1.0], [2.0])], num_pairs=1)
    assert alone.difference is None
    assert paired_intervals([], num_pairs=5) == []
