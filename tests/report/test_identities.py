from typing import Any

import pytest

from batchspec.report import Aggregate
from batchspec.report.identities import broken_identities

from .records import emitted_by, recorder_of, served

RECORDER = recorder_of([(3, 2), (0, 0), (2, 2), (3, 0)], num_spec_tokens=3, num_discarded=1)


def broken(*, batchspec: bool = True, **changes: Any) -> list[str]:
    tokens = emitted_by(RECORDER)
    return broken_identities(
        RECORDER.speculative_decoding() | changes,
        batchspec=RECORDER.emitted(completion_tokens=tokens) if batchspec else None,
        completion_tokens=tokens,
    )


def test_an_honest_record_breaks_none() -> None:
    assert broken() == []
    assert broken(batchspec=False) == []
    assert broken(per_step_accepted=None, per_step_drafted=None) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"acceptance_histogram": [1, 0, 2]},
        {"acceptance_histogram": [0, 1, 2, 0]},
        {"num_spec_steps": 4},
        {"num_accepted_draft_tokens": 5},
        {"num_draft_tokens": 10},
        {"num_draft_tokens": 7},
        {"num_draft_tokens": 2},
        {"per_step_accepted": [2, 1, 0]},
        {"per_step_accepted": [2, 2]},
        {"per_step_drafted": [3, 3, 3]},
        {"per_step_drafted": [3, 5]},
        {"num_draft_tokens": -1},
    ],
)
def test_a_contradiction_is_named(changes: Any) -> None:
    assert broken(**changes)


def test_the_two_lengths_must_agree() -> None:
    document = RECORDER.emitted(completion_tokens=emitted_by(RECORDER))
    named = broken_identities(
        RECORDER.speculative_decoding(), batchspec=document, completion_tokens=emitted_by(RECORDER) + 1
    )
    emitted = emitted_by(RECORDER)
    assert named == [
        f"completion_tokens is {emitted + 1}, but turns + decode steps + accepted - discarded is {emitted}"
    ]


def test_contradictory_records_are_counted() -> None:
    aggregate = Aggregate()
    good, bad = served(RECORDER), served(RECORDER)
    bad["response"]["body"]["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"] += 1
    aggregate.add(good)
    aggregate.add(bad)
    assert aggregate.document()["acceptance"]["num_inconsistent_requests"] == 1
