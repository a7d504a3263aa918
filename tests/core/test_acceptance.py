"""The recorder of one request, against the documentation page and by its own rules."""

import pytest

from batchspec.acceptance import AcceptanceRecorder, DetailedRecorder, Level, make_recorder, sum_recorders

KEYS = [
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "acceptance_histogram",
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_tokens",
]


def play(recorder: AcceptanceRecorder, steps: list[tuple[int, int]]) -> None:
    """Record steps of (drafted, accepted), every token of which reaches the output."""
    position = 1
    for num_drafted, num_accepted in steps:
        recorder.record(
            num_drafted=num_drafted, num_accepted=num_accepted, num_emitted=num_accepted + 1, position=position
        )
        position += num_accepted + 1


@pytest.mark.parametrize("kind", [AcceptanceRecorder, DetailedRecorder])
def test_the_example_of_the_documentation_to_the_last_digit(kind: type[AcceptanceRecorder]) -> None:
    recorder = kind(num_spec_tokens=3)
    play(recorder, [(3, 0)] * 39 + [(3, 1)] + [(3, 3)] * 3)
    document = recorder.speculative_decoding()
    assert document["acceptance_histogram"] == [39, 1, 0, 3]
    assert document["num_draft_tokens"] == 129
    assert document["num_spec_steps"] == 43
    assert document["num_accepted_draft_tokens"] == 10
    assert document["num_spec_tokens"] == 3
    assert repr(document["mean_acceptance_length"]) == "1.2325581395348837"
    assert repr(document["draft_acceptance_rate"]) == "0.07751937984496124"


def test_keys_stand_in_the_documented_order() -> None:
    assert list(AcceptanceRecorder(num_spec_tokens=2).speculative_decoding()) == KEYS
    detailed = list(DetailedRecorder(num_spec_tokens=2).speculative_decoding())
    assert detailed == [*KEYS, "per_step_accepted", "per_step_drafted"]


def test_nothing_recorded_gives_the_neutral_document() -> None:
    document = DetailedRecorder(num_spec_tokens=2).speculative_decoding()
    assert document["mean_acceptance_length"] == 1.0
    assert isinstance(document["mean_acceptance_length"], float)
    assert document["draft_acceptance_rate"] == 0.0
    assert isinstance(document["draft_acceptance_rate"], float)
    assert document["acceptance_histogram"] == [0, 0, 0]
    assert document["per_step_accepted"] == []
    assert document["per_step_drafted"] == []


def test_all_accepted_and_none_accepted() -> None:
    full, none = AcceptanceRecorder(num_spec_tokens=2), AcceptanceRecorder(num_spec_tokens=2)
    play(full, [(2, 2)] * 4)
    play(none, [(2, 0)] * 4)
    assert full.speculative_decoding()["mean_acceptance_length"] == 3.0
    assert full.speculative_decoding()["draft_acceptance_rate"] == 1.0
    assert none.speculative_decoding()["mean_acceptance_length"] == 1.0
    assert none.speculative_decoding()["num_spec_steps"] == 4


def test_a_step_without_a_draft_is_only_a_decode_step() -> None:
    recorder = DetailedRecorder(num_spec_tokens=2)
    play(recorder, [(0, 0), (2, 1), (0, 0)])
    assert recorder.acceptance_histogram == [0, 1, 0]
    assert recorder.num_decode_steps == 3
    assert recorder.per_step_position == [2]


def test_per_step_lists_keep_real_lengths_and_order() -> None:
    recorder = DetailedRecorder(num_spec_tokens=3)
    play(recorder, [(3, 2), (1, 0), (0, 0), (2, 2)])
    document = recorder.speculative_decoding() | recorder.emitted(completion_tokens=9)
    assert document["per_step_drafted"] == [3, 1, 2]
    assert document["num_draft_tokens"] == 6
    assert document["draft_acceptance_rate"] == 4 / 6
    assert document["per_step_accepted"] == [2, 0, 2]
    assert document["per_step_position"] == [1, 4, 6]
    assert document["tokens_per_decode_step"] == 2.0


def test_tokens_behind_the_cut_are_discarded_but_accepted() -> None:
    recorder = AcceptanceRecorder(num_spec_tokens=3)
    recorder.record(num_drafted=3, num_accepted=3, num_emitted=1, position=1)
    assert recorder.num_accepted_draft_tokens == 3
    own = recorder.emitted(completion_tokens=2)
    assert own == {"num_decode_steps": 1, "num_discarded_tokens": 3, "tokens_per_decode_step": 1.0}


def test_no_decode_step_has_no_tokens_per_step() -> None:
    assert AcceptanceRecorder(num_spec_tokens=3).emitted(completion_tokens=1)["tokens_per_decode_step"] is None


@pytest.mark.parametrize("kind", [AcceptanceRecorder, DetailedRecorder])
def test_absorbing_equals_recording_in_one(kind: type[AcceptanceRecorder]) -> None:
    first, second, whole = (kind(num_spec_tokens=3) for _ in range(3))
    play(first, [(3, 2), (2, 0)])
    play(second, [(0, 0), (3, 3)])
    for recorder in (first, second):
        recorder.num_discarded_tokens += 1
    total = sum_recorders([first, second])
    assert total is not None
    play(whole, [(3, 2), (2, 0), (0, 0), (3, 3)])
    assert total.speculative_decoding() == whole.speculative_decoding()
    assert total.num_decode_steps == 4
    assert total.num_discarded_tokens == 2


def test_summing_leaves_the_parts_alone() -> None:
    part = DetailedRecorder(num_spec_tokens=2)
    play(part, [(2, 1)])
    before = part.speculative_decoding()
    total = sum_recorders([part, part])
    assert total is not None
    assert total.num_spec_steps == 2
    assert part.speculative_decoding() == before


def test_a_document_does_not_change_with_later_steps() -> None:
    recorder = DetailedRecorder(num_spec_tokens=2)
    document = recorder.speculative_decoding() | recorder.emitted(completion_tokens=1)
    play(recorder, [(2, 1)])
    assert document["acceptance_histogram"] == [0, 0, 0]
    assert document["per_step_accepted"] == document["per_step_drafted"] == document["per_step_position"] == []


def test_counts_for_different_k_cannot_be_added() -> None:
    with pytest.raises(ValueError, match="k = 2 to counts for k = 3"):
        AcceptanceRecorder(num_spec_tokens=3).absorb(AcceptanceRecorder(num_spec_tokens=2))


def test_each_level_makes_its_own_recorder_and_none_makes_none() -> None:
    assert make_recorder(level=Level.NONE, num_spec_tokens=3) is None
    assert type(make_recorder(level=Level.SUMMARY, num_spec_tokens=3)) is AcceptanceRecorder
    assert type(make_recorder(level=Level.DETAILED, num_spec_tokens=3)) is DetailedRecorder
    assert sum_recorders([]) is None
