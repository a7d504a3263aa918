"""Where memory is short, steps get smaller and the output stays the same; only what cannot run at all fails."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.acceptance import Level
from batchspec.model.memory import is_shortage
from batchspec.request import Request
from batchspec.step import StepPlan
from batchspec.testing import TableModel

from .draft_models import TABLE, draft_model_over, ends_clean, engine_with, requests_of
from .paged import PagedModel
from .runs import ask, checked_engine, plans_of, reconciliation_of, serve, spec_of, token_ids_of
from .scripts import FailingModel
from .workloads import Setup, engine_of, plain_run, setups, tables, visible, workloads

SHORTAGES: list[Callable[[], BaseException]] = [
    lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    lambda: MemoryError(),
    lambda: RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
]


class Meagre:
    """A model that writes part of what it is asked for and then has no memory left, where a rule says so."""

    def __init__(self, inner: Any, is_short: Callable[[StepPlan], bool], error: Callable[[], BaseException]):
        self.inner = inner
        self.is_short = is_short
        self.error = error
        self.num_failures = 0

    def forward(self, plan: StepPlan) -> torch.Tensor:
        if self.is_short(plan):
            self.num_failures += 1
            self.inner.forward(StepPlan(chunks=plan.chunks[: len(plan.chunks) // 2]))
            raise self.error()
        logits: torch.Tensor = self.inner.forward(plan)
        return logits


@settings(max_examples=15)
@given(
    table=tables,
    requests=workloads(),
    setup=setups,
    error=st.sampled_from(SHORTAGES),
    most=st.integers(1, 16),
    seed=st.integers(0, 9),
)
def test_the_output_does_not_depend_on_how_often_memory_was_short(
    table: torch.Tensor, requests: list[Request], setup: Setup, error: Callable[[], BaseException], most: int, seed: int
) -> None:
    """Steps above some size never work, smaller ones fail now and then; steps of one token always work."""
    expected, answers = plain_run(table, requests)
    engine = engine_of(table, setup, answers)
    dice = random.Random(seed)

    def is_short(plan: StepPlan) -> bool:
        return plan.num_tokens > 1 and (plan.num_tokens > most or dice.random() < 0.1)

    engine.runner = Meagre(engine.runner, is_short, error)
    records = serve(engine, requests)
    assert [visible(record) for record in records] == [visible(record) for record in expected]
    assert setup.level is Level.NONE or reconciliation_of(engine, records).is_exact


@pytest.mark.parametrize("error", SHORTAGES)
def test_what_cannot_run_even_by_itself_fails_alone(error: Callable[[], BaseException]) -> None:
    engine = checked_engine(max_num_seqs=4, max_num_batched_tokens=64)
    greedy = {57}  # a step with this token never works
    engine.runner = Meagre(
        TableModel.counting(), lambda plan: any(greedy & set(chunk.token_ids.tolist()) for chunk in plan.chunks), error
    )
    records = serve(engine, [ask([10 * i + 5], index=i, max_tokens=4) for i in range(10)])
    expected: list[Any] = [[[10 * i + 6, 10 * i + 7, 10 * i + 8, 10 * i + 9]] for i in range(10)]
    expected[5] = "out_of_memory"
    assert [token_ids_of(record) for record in records] == expected
    assert records[5]["response"]["status_code"] == 500
    assert records[5]["error"]["message"].startswith("line 6: out of memory even for a step of one token")


def test_a_job_without_any_memory_ends_with_an_error_for_every_request() -> None:
    engine = checked_engine(max_num_seqs=4, max_num_batched_tokens=64)
    engine.runner = Meagre(TableModel.counting(), lambda plan: True, SHORTAGES[0])
    records = serve(engine, [ask([10], index=i, max_tokens=4) for i in range(20)])
    assert [token_ids_of(record) for record in records] == ["out_of_memory"] * 20
    assert engine.runner.num_failures < 20 + 8  # the size that does not work is not tried again and again


def test_steps_grow_again_behind_a_shortage_that_is_over() -> None:
    engine = checked_engine(max_num_seqs=1, max_num_batched_tokens=64, max_model_len=1024)
    engine.runner = Meagre(TableModel.counting(), lambda plan: 1 < len(plans_of(engine)) < 6, SHORTAGES[1])
    assert engine.scheduler.max_num_batched_tokens == 64
    serve(engine, [ask([1], max_tokens=120, ignore_eos=True)])
    assert engine.scheduler.max_num_batched_tokens == 8
    serve(engine, [ask([1], max_tokens=3 * 64, ignore_eos=True)])
    assert engine.scheduler.max_num_batched_tokens == 64


@pytest.mark.parametrize("error", SHORTAGES)
@pytest.mark.parametrize("failing", [[3], [4, 5, 6], range(0, 1000, 3), range(1000)])
def test_a_draft_model_without_memory_drafts_nothing_and_later_what_it_would_have(
    failing: list[int], error: Callable[[], RuntimeError]
) -> None:
    draft_model = draft_model_over(TABLE)
    inner = draft_model.inner.runner
    ordinals = iter(range(100_000))
    draft_model.inner.runner = Meagre(inner, lambda plan: next(ordinals) in failing, error)
    engine = engine_with(draft_model, max_num_seqs=3)
    requests = requests_of(6)
    records = serve(engine, requests)
    expected, _ = plain_run(TABLE, requests)
    assert [visible(record) for record in records] == [visible(record) for record in expected]
    assert reconciliation_of(engine, records).is_exact
    assert ends_clean(draft_model)
    for spec in map(spec_of, records):  # the draft model is the target's twin: what it drafts from true pages is right
        assert spec["num_accepted_draft_tokens"] == spec["num_draft_tokens"]


def test_other_errors_are_no_shortage() -> None:
    assert not is_shortage(RuntimeError("boom"))
    assert not is_shortage(ValueError("out of memory"))
    engine = checked_engine(model=FailingModel(TABLE, failing=[0], error=lambda: RuntimeError("boom")))
    records = serve(engine, [ask([10], max_tokens=2)])
    assert token_ids_of(records[0]) == "engine_error"
    assert engine.scheduler.max_num_batched_tokens == 64


def test_pages_are_whole_where_a_failed_step_had_written_some() -> None:
    """The paged model checks what it reads: a page that was written by a failed step must be written again."""
    model = PagedModel(TABLE, block_size=4)
    engine = checked_engine(model=model, block_size=4, max_num_seqs=3, prefix_caching=True)
    ordinals = iter(range(100_000))
    engine.runner = Meagre(model, lambda plan: next(ordinals) % 4 == 2 and plan.num_tokens > 1, SHORTAGES[0])
    requests = requests_of(12)
    expected, _ = plain_run(TABLE, requests)
    assert [visible(record) for record in serve(engine, requests)] == [visible(record) for record in expected]
    assert engine.runner.num_failures > 5
