"""Continuous batching by its promises: limits hold, the oldest goes on, nothing is computed twice or left out.

``CheckedScheduler`` asserts the limits, the progress of the oldest, the order of arrival and the conservation of pages
in every step of these runs.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.acceptance import Level
from batchspec.blocks import BlockPool
from batchspec.scheduler import Scheduler
from batchspec.sequence import Sequence
from batchspec.step import Draft, StepPlan
from batchspec.testing import TableModel

from .runs import CheckedScheduler, ask, checked_engine, plans_of, serve, token_ids_of
from .scripts import counting_drafter, wrong_drafter
from .sequences import verdicts_for, waiting


def scheduler_of(*, num_blocks: int = 32, block_size: int = 4, seqs: int = 4, budget: int = 64) -> CheckedScheduler:
    pool = BlockPool(num_blocks=num_blocks, block_size=block_size)
    return CheckedScheduler(Scheduler(pool=pool, max_num_seqs=seqs, max_num_batched_tokens=budget))


def step(scheduler: Scheduler, *drafts: Draft, wrong: bool = False) -> StepPlan:
    """Plan and commit one step in which the target counts upwards, or matches no draft."""
    plan = scheduler.plan(drafts, now=1.0)
    targets = [int(t) + 1 + 100 * wrong for c in plan.sampled for t in c.token_ids[len(c.token_ids) - c.num_rows :]]
    scheduler.commit(plan, verdicts_for(plan, targets), now=2.0)
    return plan


def drafted(sequence: Sequence, num_tokens: int) -> Draft:
    last = int(sequence.tokens[sequence.num_tokens - 1])
    return Draft(sequence=sequence, token_ids=[last + 1 + i for i in range(num_tokens)])


def sizes(plan: StepPlan) -> list[int]:
    return [len(chunk.token_ids) for chunk in plan.chunks]


def test_prefill_and_decode_share_one_pass() -> None:
    scheduler = scheduler_of()
    first, second = waiting([1, 2, 3]), waiting([7] * 5)
    scheduler.add(first)
    step(scheduler)
    scheduler.add(second)
    plan = step(scheduler, drafted(first, 3))
    assert sizes(plan) == [4, 5]
    assert [chunk.num_rows for chunk in plan.chunks] == [4, 1]
    assert first.num_output_tokens == 5
    assert second.num_output_tokens == 1


def test_a_long_prompt_is_computed_in_chunks_each_token_once() -> None:
    scheduler = scheduler_of(budget=4)
    sequence = waiting(list(range(10)))
    scheduler.add(sequence)
    plans = [step(scheduler) for _ in range(3)]
    assert [chunk.token_ids.tolist() for plan in plans for chunk in plan.chunks] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [chunk.samples for plan in plans for chunk in plan.chunks] == [False, False, True]
    assert sequence.output_ids == [10]


def test_no_more_sequences_than_allowed_are_admitted() -> None:
    scheduler = scheduler_of(seqs=2)
    for start in (1, 2, 3):
        scheduler.add(waiting([start], max_tokens=2))
    assert len(step(scheduler).chunks) == 2
    assert len(scheduler.waiting) == 1
    step(scheduler)
    assert len(scheduler.reap()) == 2
    assert step(scheduler).chunks[0].token_ids.tolist() == [3]


def test_a_draft_that_does_not_fit_the_rest_of_the_budget_waits_whole() -> None:
    """Cutting it would make a request's metrics depend on its neighbours."""
    scheduler = scheduler_of(budget=6)
    first, second = waiting([1]), waiting([50])
    scheduler.add(first)
    scheduler.add(second)
    step(scheduler)
    plan = step(scheduler, drafted(first, 3), drafted(second, 3))
    assert [chunk.sequence for chunk in plan.chunks] == [first]
    assert second.num_output_tokens == 1


def test_a_draft_longer_than_the_whole_budget_is_cut() -> None:
    scheduler = scheduler_of(budget=3)
    sequence = waiting([1])
    scheduler.add(sequence)
    step(scheduler)
    assert sizes(step(scheduler, drafted(sequence, 5))) == [3]
    assert sequence.recorder is not None
    assert sequence.recorder.num_draft_tokens == 2


def test_drafts_for_sequences_that_are_not_decoding_are_dropped() -> None:
    scheduler = scheduler_of(budget=4)
    sequence = waiting([1, 2, 3, 4, 5, 6])
    scheduler.add(sequence)
    assert sizes(step(scheduler, drafted(sequence, 2))) == [4]
    assert sizes(step(scheduler, drafted(sequence, 2))) == [2]
    assert sequence.output_ids == [7]
    assert sequence.recorder is not None
    assert sequence.recorder.num_decode_steps == 0


def test_rejected_drafts_give_their_pages_back() -> None:
    scheduler = scheduler_of(block_size=1)
    sequence = waiting([1, 2])
    scheduler.add(sequence)
    step(scheduler)
    step(scheduler, drafted(sequence, 3), wrong=True)
    assert sequence.num_tokens == 4
    assert sequence.num_computed_tokens == 3
    assert len(sequence.blocks) <= 4


def full_pool() -> tuple[CheckedScheduler, Sequence, Sequence]:
    """Two sequences that own all the pages between them and are about to need more."""
    scheduler = scheduler_of(num_blocks=8, block_size=1)
    old, young = waiting([1, 2, 3], max_tokens=4), waiting([50, 51, 52], max_tokens=4)
    scheduler.add(old)
    scheduler.add(young)
    step(scheduler)
    step(scheduler)
    assert scheduler.pool.num_free == 0
    return scheduler, old, young


def test_short_of_pages_the_youngest_is_put_back_with_its_draft_uncounted() -> None:
    scheduler, old, young = full_pool()
    assert young.is_decoding
    tokens = young.output_ids
    plan = step(scheduler, drafted(old, 1), drafted(young, 3))
    assert [chunk.sequence for chunk in plan.chunks] == [old]
    assert list(scheduler.waiting) == [young]
    assert young.blocks == []
    assert young.num_computed_tokens == 0
    assert young.output_ids == tokens
    assert scheduler.num_preemptions == young.num_preemptions == 1
    assert young.recorder is not None
    assert young.recorder.num_draft_tokens == 0
    assert young.recorder.num_decode_steps == 1


def test_nobody_is_put_back_for_a_draft() -> None:
    """Of three free pages the old one's next token and one draft token take two, and the young one's next token one."""
    scheduler = scheduler_of(num_blocks=9, block_size=1)
    old, young = waiting([1, 2, 3], max_tokens=4), waiting([50, 51, 52], max_tokens=4)
    scheduler.add(old)
    scheduler.add(young)
    step(scheduler)
    plan = step(scheduler, drafted(old, 3), wrong=True)
    assert sizes(plan) == [2, 1]
    assert scheduler.num_preemptions == 0


def test_who_was_put_back_is_not_admitted_in_the_same_step_and_resumes_first() -> None:
    scheduler, old, young = full_pool()
    late = waiting([90], max_tokens=1)
    scheduler.add(late)
    step(scheduler)
    assert list(scheduler.waiting) == [young, late]
    order = []
    while scheduler.num_unfinished:
        step(scheduler)
        order += scheduler.reap()
    assert order[0] is old
    assert young.output_ids == list(range(53, 57))


def test_a_sequence_keeps_its_first_scheduling_time_when_put_back() -> None:
    scheduler, _, young = full_pool()
    step(scheduler)
    assert young.timing.scheduled == 1.0
    first = young.timing.first_token
    while scheduler.num_unfinished:
        step(scheduler)
        scheduler.reap()
    assert young.timing.scheduled == 1.0
    assert young.timing.first_token == first


def test_dropping_forgets_a_running_and_a_waiting_sequence() -> None:
    scheduler, old, young = full_pool()
    step(scheduler)
    scheduler.drop(young)
    scheduler.drop(old)
    assert scheduler.num_unfinished == 0
    assert scheduler.pool.num_free == scheduler.pool.num_blocks


@settings(max_examples=40)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 12)), min_size=1, max_size=8),
    seqs=st.integers(1, 4),
    budget=st.integers(1, 12),
    spare=st.integers(0, 4),
    block_size=st.integers(1, 5),
    k=st.integers(1, 4),
)
def test_everything_ends_and_nothing_is_computed_twice_except_after_a_preemption(
    lengths: list[tuple[int, int]], seqs: int, budget: int, spare: int, block_size: int, k: int
) -> None:
    engine = checked_engine(
        model=TableModel.counting(),
        drafter=counting_drafter(k, right=k // 2),
        max_num_seqs=seqs,
        max_num_batched_tokens=budget,
        max_model_len=32,
        num_blocks=-(-32 // block_size) + spare,
        block_size=block_size,
        eos_ids=frozenset(),
    )
    requests = [ask([i] * length, index=i, max_tokens=num) for i, (length, num) in enumerate(lengths)]
    records = serve(engine, requests)
    assert [token_ids_of(record) for record in records] == [
        [[i + 1 + j for j in range(num)]] for i, (_, num) in enumerate(lengths)
    ]
    num_kept = sum(len(chunk.token_ids) - len(chunk.draft) for plan in plans_of(engine) for chunk in plan.chunks)
    num_accepted = engine.progress.num_accepted_draft_tokens
    num_needed = sum(length for length, _ in lengths) + engine.progress.output_tokens - len(lengths)
    if not engine.scheduler.num_preemptions:
        assert num_kept + num_accepted >= num_needed >= num_kept
    else:
        assert num_kept + num_accepted > num_needed - 1


def test_a_batch_that_does_not_fit_the_budget_starves_nobody() -> None:
    """With room for one draft only, the others wait for the oldest, but all of them end."""
    engine = checked_engine(
        model=TableModel.counting(), drafter=wrong_drafter(3), level=Level.SUMMARY, max_num_batched_tokens=4
    )
    records = serve(engine, [ask([20 * i], index=i, max_tokens=5) for i in range(6)])
    assert [token_ids_of(record) for record in records] == [[[20 * i + 1 + j for j in range(5)]] for i in range(6)]


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_preempted_sequences_give_the_same_tokens(temperature: float) -> None:
    requests = [ask([30 + i] * 5, index=i, max_tokens=20, temperature=temperature) for i in range(5)]
    answers = []
    for num_blocks in (64, 9):
        engine = checked_engine(model=TableModel.random(seed=3), max_model_len=32, num_blocks=num_blocks)
        answers.append([token_ids_of(record) for record in serve(engine, requests)])
        assert (engine.scheduler.num_preemptions > 0) is (num_blocks == 9)
    assert answers[0] == answers[1]
