"""Logits that choose no token end their own request with an error, never with a token out of nothing."""

from typing import Any

import pytest
import torch

from batchspec.acceptance import Level
from batchspec.drafting import Drafter
from batchspec.testing import ScriptedDrafter, TableModel

from .runs import ask, checked_engine, reconciliation_of, sample_of, serve, token_ids_of
from .scripts import counting_drafter, poisoned_model, wrong_drafter

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("value", [NAN, -INF, INF])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("sampling", [{}, {"min_p": 0.1}, {"top_p": 0.9}, {"top_k": 3, "top_p": 0.9, "min_p": 0.1}])
def test_the_request_fails_and_the_others_go_on(value: float, temperature: float, sampling: dict[str, Any]) -> None:
    table = TableModel.counting().table * 1000
    engine = checked_engine(model=poisoned_model(13, value=value, table=table))
    requests = [
        ask([start], index=i, max_tokens=6, temperature=temperature, **sampling) for i, start in enumerate((30, 10, 50))
    ]
    records = serve(engine, requests)
    assert [token_ids_of(record) for record in records] == [
        [list(range(31, 37))],
        "invalid_logits",
        [list(range(51, 57))],
    ]
    error = records[1]["error"]
    assert records[1]["response"]["status_code"] == 500
    assert error["type"] == "server_error"
    assert error["message"].startswith("line 2: the model's logits choose no token")
    assert engine.progress.num_failed == 1
    assert sample_of(engine, "request_success_total", finished_reason="error") == 1


def test_a_single_nan_makes_a_row_invalid() -> None:
    table = TableModel.counting().table.clone()
    table[13, 200] = NAN
    assert (
        token_ids_of(serve(checked_engine(model=TableModel(table)), [ask([12], max_tokens=3)])[0]) == "invalid_logits"
    )


def test_a_removed_token_does_not_make_a_row_invalid() -> None:
    table = TableModel.counting().table.clone()
    table[:, 200] = -INF
    records = serve(checked_engine(model=TableModel(table)), [ask([12], max_tokens=3)])
    assert token_ids_of(records[0]) == [[13, 14, 15]]


@pytest.mark.parametrize("drafter", [counting_drafter(3), counting_drafter(3, right=1), wrong_drafter(3)])
def test_both_accounts_count_the_step_in_which_the_request_failed(drafter: Drafter) -> None:
    engine = checked_engine(model=poisoned_model(16), drafter=drafter, level=Level.DETAILED)
    records = serve(engine, [ask([10], max_tokens=30)])
    assert token_ids_of(records[0]) == "invalid_logits"
    assert reconciliation_of(engine, records).is_exact
    assert engine.desk.unreported["error"].num_spec_steps > 0


def test_a_draft_token_is_not_accepted_by_a_row_without_a_target() -> None:
    """Where logits are NaN, argmax names a token all the same; a draft of that very token must not count."""
    invalid = int(torch.full((257,), NAN).argmax())
    drafter = ScriptedDrafter(num_spec_tokens=2, script=lambda sequence: [invalid, invalid])
    engine = checked_engine(model=poisoned_model(12), drafter=drafter, level=Level.DETAILED)
    records = serve(engine, [ask([11], max_tokens=30)])
    assert token_ids_of(records[0]) == "invalid_logits"
    assert engine.counters.totals()["num_accepted_draft_tokens"] == 0
    assert engine.desk.unreported["error"].acceptance_histogram == [1, 0, 0]


def test_a_wrong_draft_that_the_model_cannot_follow_does_no_harm() -> None:
    drafter = ScriptedDrafter(num_spec_tokens=2, script=lambda sequence: [200, 200])
    engine = checked_engine(model=poisoned_model(200), drafter=drafter, level=Level.DETAILED)
    records = serve(engine, [ask([11], max_tokens=4)])
    assert token_ids_of(records[0]) == [[12, 13, 14, 15]]


@pytest.mark.parametrize("sampling", [{"max_tokens": 3}, {"stop_token_ids": (13,), "max_tokens": 30}])
def test_what_lies_behind_the_end_of_the_output_does_no_harm(sampling: dict[str, Any]) -> None:
    engine = checked_engine(model=poisoned_model(14), drafter=counting_drafter(4), level=Level.DETAILED)
    records = serve(engine, [ask([10], **sampling)])
    assert token_ids_of(records[0]) == [[11, 12, 13]]
    assert reconciliation_of(engine, records).is_exact


def test_no_first_token_means_no_time_to_first_token() -> None:
    engine = checked_engine(model=poisoned_model(10), level=Level.NONE)
    records = serve(engine, [ask([10], max_tokens=3)])
    assert token_ids_of(records[0]) == "invalid_logits"
    assert sample_of(engine, "time_to_first_token_seconds_count") == 0
    assert sample_of(engine, "generation_tokens_total") == 0


@pytest.mark.parametrize("prompts", [[[10], [10]], [[10], [11]], [[11], [10]], [[10], [40]]])
def test_several_sequences_of_one_request_give_one_error_record(prompts: list[list[int]]) -> None:
    engine = checked_engine(model=poisoned_model(12, 42), drafter=counting_drafter(2), level=Level.DETAILED)
    records = serve(engine, [ask(*prompts, index=0, max_tokens=4), ask([60], index=1, max_tokens=4)])
    assert [token_ids_of(record) for record in records] == ["invalid_logits", [[61, 62, 63, 64]]]
    assert reconciliation_of(engine, records).is_exact


def test_one_sample_ends_well_in_the_step_in_which_another_fails() -> None:
    engine = checked_engine(model=poisoned_model(41), drafter=counting_drafter(2), level=Level.DETAILED)
    records = serve(engine, [ask([10], [40], index=0, max_tokens=1), ask([60], index=1, max_tokens=1)])
    assert [token_ids_of(record) for record in records] == [[[11], [41]], [[61]]]
    engine = checked_engine(model=poisoned_model(41), drafter=counting_drafter(2), level=Level.DETAILED)
    records = serve(engine, [ask([10], [40], index=0, max_tokens=3), ask([60], index=1, max_tokens=3)])
    assert [token_ids_of(record) for record in records] == ["invalid_logits", [[61, 62, 63]]]
    assert reconciliation_of(engine, records).is_exact
    assert engine.desk.unreported["error"].num_spec_steps == 2
