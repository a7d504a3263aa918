"""A failed forward pass costs the requests in the batch, not the run."""

from collections.abc import Callable

import pytest
import torch

from batchspec.acceptance import Level
from batchspec.sequence import Sequence
from batchspec.testing import ScriptedDrafter, TableModel

from .runs import ask, checked_engine, reconciliation_of, sample_of, serve, token_ids_of
from .scripts import FailingModel, counting_drafter

TABLE = TableModel.counting().table


def failing_model(*failing: int, error: Callable[[], RuntimeError] = lambda: RuntimeError("boom")) -> FailingModel:
    return FailingModel(TABLE, failing=failing, error=error)


def test_the_batch_gets_error_records_and_the_run_goes_on() -> None:
    engine = checked_engine(model=failing_model(1), max_num_seqs=2)
    records = serve(engine, [ask([10 * i], index=i, max_tokens=3) for i in range(5)])
    expected = [[[10 * i + 1, 10 * i + 2, 10 * i + 3]] for i in range(5)]
    assert [token_ids_of(record) for record in records] == ["engine_error", "engine_error", *expected[2:]]
    error = records[1]["error"]
    assert records[1]["response"]["status_code"] == 500
    assert error["type"] == "server_error"
    assert error["message"] == "line 2: the forward pass failed with RuntimeError: boom"
    assert sample_of(engine, "request_success_total", finished_reason="error") == 2
    assert engine.progress.num_failed == 2


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (lambda: RuntimeError(), "RuntimeError: no message"),
        (lambda: RuntimeError("first\nsecond"), "RuntimeError: first"),
        (
            lambda: torch.AcceleratorError("CUDA error: an illegal access"),
            "AcceleratorError: CUDA error: an illegal access",
        ),
    ],
)
def test_the_message_is_one_line_whatever_was_raised(error: Callable[[], RuntimeError], message: str) -> None:
    records = serve(checked_engine(model=failing_model(0, error=error)), [ask([10], max_tokens=2)])
    assert records[0]["error"]["message"].endswith(message)


def test_a_model_that_always_fails_ends_every_request_once() -> None:
    engine = checked_engine(model=failing_model(*range(100)), max_num_seqs=3)
    records = serve(engine, [ask([10], index=i, max_tokens=2) for i in range(8)])
    assert [record["custom_id"] for record in records] == [f"r{i}" for i in range(8)]
    assert {token_ids_of(record) for record in records if record["error"]} == {"engine_error"}


def test_another_error_is_not_swallowed() -> None:
    class Broken(TableModel):
        def forward(self, plan: object) -> torch.Tensor:
            raise TypeError("a mistake of ours")

    with pytest.raises(TypeError, match="a mistake of ours"):
        serve(checked_engine(model=Broken(TABLE)), [ask([10])])


@pytest.mark.parametrize("ordinal", range(5))
def test_accounts_agree_wherever_the_failure_strikes(ordinal: int) -> None:
    engine = checked_engine(
        model=failing_model(ordinal), drafter=counting_drafter(2, right=1), level=Level.DETAILED, num_blocks=32
    )
    requests = [
        ask([10], index=0, max_tokens=8),
        ask([40], [50], index=1, max_tokens=3),
        ask([60], index=2, n=2, max_tokens=8),
        ask([90], index=3, max_tokens=2),
        ask([100], index=4, max_tokens=5),
    ]
    records = serve(engine, requests)
    assert len(records) == 5
    assert any(record["error"] for record in records)
    assert reconciliation_of(engine, records).is_exact


def test_every_sequence_that_began_with_the_drafter_ends_there() -> None:
    class Listing(ScriptedDrafter):
        def __init__(self) -> None:
            super().__init__(num_spec_tokens=2, script=lambda sequence: [])
            self.open: list[Sequence] = []

        def begin(self, sequence: Sequence) -> None:
            assert sequence not in self.open
            self.open.append(sequence)

        def end(self, sequence: Sequence) -> None:
            self.open.remove(sequence)

    drafter = Listing()
    engine = checked_engine(model=failing_model(2, 6), drafter=drafter, max_num_seqs=3)
    serve(engine, [ask([10], index=i, n=1 + i % 2, max_tokens=2 + i) for i in range(8)])
    assert drafter.open == []


def test_a_preempted_request_survives_the_failure_of_the_batch() -> None:
    engine = checked_engine(model=failing_model(14), max_model_len=24, num_blocks=6, max_num_seqs=2)
    records = serve(engine, [ask([10] * 3, index=0, max_tokens=20), ask([60] * 3, index=1, max_tokens=20)])
    assert engine.scheduler.num_preemptions > 0
    assert [token_ids_of(record) for record in records] == ["engine_error", [list(range(61, 81))]]
