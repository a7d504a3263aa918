import random
import statistics
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batchspec.acceptance import AcceptanceRecorder, Level, sum_recorders
from batchspec.reconcile import AcceptanceSums
from batchspec.report import Aggregate

from .records import UNHURRIED, emitted_by, recorder_of, served


@st.composite
def recorders(draw: st.DrawFn) -> list[AcceptanceRecorder]:
    num_spec_tokens = draw(st.integers(1, 5))
    level = draw(st.sampled_from([Level.SUMMARY, Level.DETAILED]))
    step = st.integers(0, num_spec_tokens).flatmap(lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted)))
    runs = draw(st.lists(st.lists(step, max_size=12), min_size=1, max_size=8))
    return [recorder_of(steps, num_spec_tokens=num_spec_tokens, level=level) for steps in runs]


def acceptance_of(records: Iterable[dict[str, Any]]) -> Any:
    aggregate = Aggregate()
    for record in records:
        aggregate.add(record)
    return aggregate.document()["acceptance"]


@UNHURRIED
@given(recorders())
def test_pooled_is_the_sum_of_the_recorders(sample: list[AcceptanceRecorder]) -> None:
    total = sum_recorders(sample)
    assert total is not None
    acceptance = acceptance_of(served(recorder) for recorder in sample)
    pooled = acceptance["pooled"]
    assert pooled["acceptance_histogram"] == total.acceptance_histogram
    assert pooled["num_spec_steps"] == total.num_spec_steps
    assert pooled["num_accepted_draft_tokens"] == total.num_accepted_draft_tokens
    assert pooled["num_draft_tokens"] == total.num_draft_tokens
    assert pooled["num_decode_steps"] == total.num_decode_steps
    assert pooled["num_discarded_tokens"] == total.num_discarded_tokens
    assert acceptance["num_inconsistent_requests"] == 0
    emitted = sum(emitted_by(recorder) - 1 for recorder in sample)
    if total.num_decode_steps:
        assert pooled["tokens_per_decode_step"] == emitted / total.num_decode_steps
    if total.num_spec_steps:
        documented = total.speculative_decoding()
        assert pooled["mean_acceptance_length"] == documented["mean_acceptance_length"]
        assert pooled["draft_acceptance_rate"] == documented["draft_acceptance_rate"]


@UNHURRIED
@given(recorders())
def test_the_mean_is_over_the_requests_with_a_step(sample: list[AcceptanceRecorder]) -> None:
    mean = acceptance_of(served(recorder) for recorder in sample)["mean_over_requests"]
    stated = [recorder.speculative_decoding() for recorder in sample if recorder.num_spec_steps]
    assert mean["num_requests"] == len(stated)
    assert mean["num_requests_without_step"] == len(sample) - len(stated)
    for key in ("mean_acceptance_length", "draft_acceptance_rate"):
        expected = statistics.mean(document[key] for document in stated) if stated else None
        assert mean[key] == expected


@UNHURRIED
@given(recorders(), st.randoms(use_true_random=False))
def test_the_order_of_the_records_does_not_matter(sample: list[AcceptanceRecorder], shuffler: random.Random) -> None:
    records = [
        served(recorder, index=index, category="ab"[index % 2] if index % 3 else None)
        for index, recorder in enumerate(sample)
    ]
    shuffled = list(records)
    shuffler.shuffle(shuffled)
    one, other = Aggregate(), Aggregate()
    for record in records:
        one.add(record)
    for record in shuffled:
        other.add(record)
    assert one.document() == other.document()


@UNHURRIED
@given(recorders())
def test_positions_agree_with_the_steps(sample: list[AcceptanceRecorder]) -> None:
    acceptance = acceptance_of(served(recorder) for recorder in sample)
    sums = AcceptanceSums.from_document(acceptance["pooled"])
    accepted = [entry["num_accepted"] for entry in acceptance["per_position"]]
    assert accepted == list(sums.num_accepted_tokens_per_pos)
    assert sum(accepted) == sums.num_accepted_draft_tokens
    drafted = [entry["num_drafted"] for entry in acceptance["per_position"]]
    assert drafted[0] == sums.num_spec_steps
    if None not in drafted:
        assert sum(drafted) == sums.num_draft_tokens
    for entry in acceptance["per_position"]:
        for key in ("marginal_rate", "conditional_rate"):
            assert entry[key] is None or 0 <= entry[key] <= 1
