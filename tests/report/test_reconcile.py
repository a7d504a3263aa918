from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.counters import Counters
from batchspec.reconcile import AcceptanceSums, Reconciliation, reconcile
from batchspec.report import totals_from_exposition

from .records import UNHURRIED, recorder_of

K = 3
REPORTED = AcceptanceSums.from_histogram([5, 2, 1, 4], 30)
SAMPLES = AcceptanceSums.from_histogram([1, 0, 2, 0], 9)
ERRORS = AcceptanceSums.from_histogram([0, 1, 0, 0], 2)
TOTALS = REPORTED + SAMPLES + ERRORS
SCALARS = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
FAULTS = [(name, None) for name in SCALARS] + [("num_accepted_tokens_per_pos", i) for i in range(K)]


def with_fault(sums: AcceptanceSums, quantity: str, position: int | None, by: int = 1) -> AcceptanceSums:
    if position is None:
        return replace(sums, **{quantity: getattr(sums, quantity) + by})
    counts = list(sums.num_accepted_tokens_per_pos)
    counts[position] += by
    return replace(sums, num_accepted_tokens_per_pos=tuple(counts))


def reconciled(
    *,
    reported: AcceptanceSums = REPORTED,
    samples: AcceptanceSums = SAMPLES,
    errors: AcceptanceSums = ERRORS,
    totals: AcceptanceSums = TOTALS,
) -> Reconciliation:
    return reconcile(reported=reported, unreported={"n > 1": samples, "error": errors}, totals=totals)


def test_equal_accounts_are_exact() -> None:
    reconciliation = reconciled()
    assert reconciliation.is_exact
    assert reconciliation.num_differences == 0
    assert [(row.quantity, row.position) for row in reconciliation.rows] == FAULTS
    assert reconciliation.document()["rows"][1] == {
        "quantity": "num_draft_tokens",
        "position": None,
        "reported": 30,
        "unreported": {"n > 1": 9, "error": 2},
        "counters": 41,
        "difference": 0,
    }


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize(("quantity", "position"), FAULTS)
@pytest.mark.parametrize("account", ["reported", "samples", "errors", "totals"])
def test_a_fault_in_either_account_is_found_where_it_is(
    account: str, quantity: str, position: int | None, by: int
) -> None:
    honest = {"reported": REPORTED, "samples": SAMPLES, "errors": ERRORS, "totals": TOTALS}[account]
    reconciliation = reconciled(**{account: with_fault(honest, quantity, position, by)})
    assert not reconciliation.is_exact
    assert reconciliation.num_differences == 1
    (row,) = [row for row in reconciliation.rows if row.difference]
    assert (row.quantity, row.position) == (quantity, position)
    assert row.difference == (-by if account == "totals" else by)


def test_positions_are_compared_even_when_their_sum_agrees() -> None:
    shifted = with_fault(with_fault(TOTALS, "num_accepted_tokens_per_pos", 0, 1), "num_accepted_tokens_per_pos", 2, -1)
    reconciliation = reconciled(totals=shifted)
    assert [(row.position, row.difference) for row in reconciliation.rows if row.difference] == [(0, -1), (2, 1)]


def test_a_cause_that_is_left_out_is_a_difference() -> None:
    assert not reconcile(reported=REPORTED, unreported={"n > 1": SAMPLES}, totals=TOTALS).is_exact


def test_a_position_that_only_one_account_knows_is_compared_with_zero() -> None:
    longer = replace(TOTALS, num_accepted_tokens_per_pos=(*TOTALS.num_accepted_tokens_per_pos, 2))
    assert [row.difference for row in reconciled(totals=longer).rows if row.difference] == [-2]
    assert [row.difference for row in reconcile(reported=longer, unreported={}, totals=TOTALS).rows][-1] == 2


def test_nothing_reconciles_with_nothing() -> None:
    reconciliation = reconcile(reported=AcceptanceSums(), unreported={}, totals=AcceptanceSums())
    assert reconciliation.is_exact
    assert len(reconciliation.rows) == 3


def test_a_document_whose_total_contradicts_its_histogram_cannot_reconcile() -> None:
    document = recorder_of([(3, 2), (3, 1)], num_spec_tokens=K).speculative_decoding()
    honest = AcceptanceSums.from_document(document)
    for key in SCALARS:
        faulty = AcceptanceSums.from_document(document | {key: document[key] + 1})
        assert not reconcile(reported=faulty, unreported={}, totals=honest).is_exact


SUMS = st.builds(
    AcceptanceSums,
    num_spec_steps=st.integers(0, 99),
    num_draft_tokens=st.integers(0, 99),
    num_accepted_draft_tokens=st.integers(0, 99),
    num_accepted_tokens_per_pos=st.lists(st.integers(0, 99), min_size=3, max_size=3).map(tuple),
)


@UNHURRIED
@given(SUMS, SUMS, SUMS)
def test_sums_add(a: AcceptanceSums, b: AcceptanceSums, c: AcceptanceSums) -> None:
    assert a + AcceptanceSums() == a
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + b - b == a
    assert AcceptanceSums.from_totals(a.totals()) == a


@UNHURRIED
@given(st.lists(st.lists(st.tuples(st.integers(1, K), st.integers(0, K)), max_size=6), max_size=6))
def test_real_recorders_and_real_counters_agree(runs: list[list[tuple[int, int]]]) -> None:
    counters = Counters(model_name="m", num_spec_tokens=K)
    reported = AcceptanceSums()
    for run in runs:
        steps = [(drafted, min(accepted, drafted)) for drafted, accepted in run]
        reported += AcceptanceSums.from_document(recorder_of(steps, num_spec_tokens=K).speculative_decoding())
        num_drafted = np.array([drafted for drafted, _ in steps], dtype=np.int64)
        accepted = np.array([[i < number for i in range(K)] for _, number in steps], dtype=np.bool_).reshape(-1, K)
        counters.observe_drafts(num_drafted=num_drafted, accepted=accepted)
    totals = AcceptanceSums.from_totals(counters.totals())
    assert reconcile(reported=reported, unreported={}, totals=totals).is_exact
    assert totals_from_exposition(counters.exposition()) == counters.totals()
