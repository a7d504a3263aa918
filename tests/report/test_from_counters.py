from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batchspec.acceptance import Level
from batchspec.reconcile import AcceptanceSums
from batchspec.report import Aggregate, acceptance_from_counters

from .records import UNHURRIED, recorder_of, served


def totals_of(*, steps: int, drafted: int, accepted: int, per_pos: Sequence[int]) -> dict[str, Any]:
    return AcceptanceSums(
        num_spec_steps=steps,
        num_draft_tokens=drafted,
        num_accepted_draft_tokens=accepted,
        num_accepted_tokens_per_pos=tuple(per_pos),
    ).totals()


def test_speculation_off_has_no_position() -> None:
    assert acceptance_from_counters(totals_of(steps=0, drafted=0, accepted=0, per_pos=[])) is None


def test_nothing_drafted_has_no_ratio() -> None:
    acceptance = acceptance_from_counters(totals_of(steps=0, drafted=0, accepted=0, per_pos=[0, 0]))
    assert acceptance is not None
    assert acceptance["pooled"]["mean_acceptance_length"] is None
    assert acceptance["pooled"]["draft_acceptance_rate"] is None
    assert acceptance["pooled"]["acceptance_histogram"] == [0, 0, 0]
    assert [entry["marginal_rate"] for entry in acceptance["per_position"]] == [None, None]


def test_counters_that_contradict_each_other_give_no_histogram() -> None:
    for broken in (
        totals_of(steps=4, drafted=8, accepted=4, per_pos=[3, 2]),
        totals_of(steps=4, drafted=8, accepted=5, per_pos=[2, 3]),
        totals_of(steps=2, drafted=6, accepted=5, per_pos=[3, 2]),
    ):
        acceptance = acceptance_from_counters(broken)
        assert acceptance is not None
        assert acceptance["pooled"]["acceptance_histogram"] is None


@UNHURRIED
@given(st.integers(1, 5).flatmap(lambda k: st.tuples(st.just(k), st.lists(st.integers(0, k), max_size=20))))
def test_full_drafts_give_the_same_numbers_as_the_records(sample: tuple[int, list[int]]) -> None:
    num_spec_tokens, accepted = sample
    steps = [(num_spec_tokens, number) for number in accepted]
    recorder = recorder_of(steps, num_spec_tokens=num_spec_tokens, level=Level.SUMMARY)
    aggregate = Aggregate()
    aggregate.add(served(recorder))
    from_records = aggregate.document()["acceptance"]
    totals = AcceptanceSums.from_histogram(recorder.acceptance_histogram, recorder.num_draft_tokens).totals()
    from_counters = acceptance_from_counters(totals)
    assert from_counters is not None
    assert list(from_counters) == list(from_records)
    assert list(from_counters["pooled"]) == list(from_records["pooled"])
    assert from_counters["per_position"] == from_records["per_position"]
    unknown = {"num_decode_steps", "num_discarded_tokens", "tokens_per_decode_step", "num_requests"}
    for key in from_records["pooled"]:
        if key not in unknown:
            assert from_counters["pooled"][key] == from_records["pooled"][key]
