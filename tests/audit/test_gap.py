"""What verification steps can have counted, and what they cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.audit.gap import impossible
from batchspec.reconcile import AcceptanceSums
from batchspec.reconcile.between import Count

K = 3
STEPS = st.lists(st.integers(1, K).flatmap(lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted))))


def gap_of(steps: list[tuple[int, int]]) -> dict[Count, int]:
    accepted = [taken for _, taken in steps]
    histogram = [accepted.count(j) for j in range(K + 1)]
    return AcceptanceSums.from_histogram(histogram, sum(drafted for drafted, _ in steps)).counts()


@given(STEPS)
def test_any_steps_are_possible(steps: list[tuple[int, int]]) -> None:
    assert impossible(gap_of(steps), num_spec_tokens=K) is None
    assert impossible(gap_of(steps), num_spec_tokens=0) is None


@given(STEPS, st.sets(st.sampled_from(list(gap_of([(3, 3)])))))
def test_counts_that_are_not_known_are_no_objection(steps: list[tuple[int, int]], unknown: set[Count]) -> None:
    known = {key: count for key, count in gap_of(steps).items() if key not in unknown}
    if not any(quantity == "num_accepted_tokens_per_pos" for quantity, _ in unknown):
        assert impossible(known, num_spec_tokens=K) is None


HONEST = gap_of([(3, 3), (3, 1), (2, 0), (1, 1)])
STEPS_, DRAFTED, ACCEPTED = ("num_spec_steps", None), ("num_draft_tokens", None), ("num_accepted_draft_tokens", None)
AT: list[Count] = [("num_accepted_tokens_per_pos", i) for i in range(K)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({STEPS_: -1}, "the responses state 1 more than the counters counted (steps)"),
        ({AT[1]: -2}, "the responses state 2 more than the counters counted (accepted at position 1)"),
        ({DRAFTED: 3}, "4 steps for 3 draft tokens"),
        ({DRAFTED: 13}, "13 draft tokens where its steps hold 12"),
        ({ACCEPTED: 10, AT[0]: 4, AT[1]: 3, AT[2]: 3}, "10 accepted of 9 drafted tokens"),
        ({ACCEPTED: 7, AT[0]: 5}, "5 tokens accepted first in 4 steps"),
        ({AT[1]: 0, ACCEPTED: 4}, "1 tokens accepted behind position 1, 0 at it"),
        ({ACCEPTED: 6}, "6 accepted tokens, 5 over the positions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_steps_can_have_counted(change: dict[Count, int], reason: str) -> None:
    assert HONEST[STEPS_] == 4
    assert HONEST[DRAFTED] == 9
    assert reason in (impossible(HONEST | change, num_spec_tokens=K) or "")
