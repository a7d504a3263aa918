"""Requests that begin alike run together: less is computed, nobody waits for ever, and no output shows it."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.blocks import BlockPool
from batchspec.prefix import PrefixCache
from batchspec.request import Request
from batchspec.sequence import Sequence
from batchspec.testing import TableModel
from batchspec.waiting import WaitingLine

from .paged import PagedModel
from .runs import CheckedScheduler, ask, checked_engine, plans_of, serve, token_ids_of
from .sequences import waiting
from .workloads import prone_table

TABLE = prone_table(1, end=-1.0, is_poisoned=False)
NUM_SLOTS = 64


def interleaved(num_headers: int, num_each: int, *, header: int = 600, **sampling: Any) -> list[Request]:
    """Requests in whose prompts the headers take turns, each with a tail of its own."""
    dice = random.Random(0)
    headers = [dice.choices(range(97, 103), k=header) for _ in range(num_headers)]
    return [
        ask([*headers[i % num_headers], *dice.choices(range(97, 103), k=8)], index=i, **sampling)
        for i in range(num_headers * num_each)
    ]


def run(requests: list[Request], **kwargs: Any) -> tuple[list[Any], int]:
    """Return the outputs, and how many tokens were computed for sequences that had none of their own yet.

    Args:
        requests: what to serve.
        kwargs: of ``make_engine``; and ``most_overtaken``, 0 for first come, first served.
    """
    most_overtaken = kwargs.pop("most_overtaken", None)
    kwargs = {"max_num_seqs": NUM_SLOTS, "max_num_batched_tokens": 2048, "max_model_len": 640} | kwargs
    engine = checked_engine(model=PagedModel(TABLE, block_size=16), block_size=16, **kwargs)
    if most_overtaken is not None:
        engine.scheduler.waiting.most_overtaken = most_overtaken
    outputs = [token_ids_of(record) for record in serve(engine, requests)]
    chunks = (chunk for plan in plans_of(engine) for chunk in plan.chunks)
    return outputs, sum(len(chunk.token_ids) for chunk in chunks if chunk.start < chunk.sequence.num_prompt_tokens)


def test_256_requests_compute_their_header_once() -> None:
    requests = interleaved(1, 256, max_tokens=2)
    expected, plain = run(requests)
    found, shared = run(requests, prefix_caching=True)
    assert found == expected
    assert plain == 256 * 608
    assert shared == 600 + 8 + 255 * (608 - 592)  # all but the 37 full blocks that the first has computed


@pytest.mark.parametrize("num_blocks", [80, 150, 300])
def test_headers_that_take_turns_do_not_drive_each_other_out(num_blocks: int) -> None:
    """The pool holds two, four or eight prompts of eight headers: in the order of the input, none is found again."""
    requests = interleaved(8, 32, max_tokens=2)
    expected, by_order = run(requests, prefix_caching=True, num_blocks=num_blocks, most_overtaken=0)
    found, together = run(requests, prefix_caching=True, num_blocks=num_blocks)
    assert found == expected
    assert together < by_order / (3 if num_blocks == 300 else 6)


def test_who_fits_beside_a_new_header_leaves_the_room_to_those_that_share_one() -> None:
    """Two prompts fill the pool, but of one header there is room for a dozen: they are served in far fewer steps."""
    engine = checked_engine(
        model=PagedModel(TABLE, block_size=16),
        block_size=16,
        prefix_caching=True,
        max_num_seqs=NUM_SLOTS,
        max_num_batched_tokens=2048,
        max_model_len=640,
        num_blocks=80,
    )
    serve(engine, interleaved(8, 8, max_tokens=16, ignore_eos=True))
    assert max(len(plan.chunks) for plan in plans_of(engine)) > 6
    assert len(plans_of(engine)) < 8 * 2 * 16


@pytest.mark.parametrize("max_num_seqs", [2, 4])
def test_one_that_shares_nothing_is_overtaken_by_two_batches_at_most(max_num_seqs: int) -> None:
    """It stands before forty sequences of which all but the last token is cached."""
    engine = checked_engine(model=TableModel(TABLE), prefix_caching=True, max_num_seqs=max_num_seqs)
    shared = [97, 98, 99, 100, 101] * 8
    requests = [
        ask(shared, index=0, n=max_num_seqs, max_tokens=3),
        ask([102] * 30, index=1, max_tokens=3),
        ask(shared, index=2, n=40, max_tokens=3),
    ]
    order = [record["custom_id"] for record in engine.run(requests, in_order=False)]
    assert order == [requests[i].custom_id for i in (0, 1, 2)]
    assert isinstance(engine.scheduler, CheckedScheduler)
    assert max(engine.scheduler.account.num_overtaken.values()) == 2 * max_num_seqs


def line_of(*prompts: list[int]) -> tuple[WaitingLine, PrefixCache, list[Sequence]]:
    """Return a line in which sequences with these prompts wait, and an empty cache of blocks of four tokens."""
    pool = BlockPool(num_blocks=64, block_size=4)
    prefixes = PrefixCache(pool)
    line = WaitingLine(pool, prefixes, most_overtaken=8)
    sequences = [waiting(prompt, max_tokens=1) for prompt in prompts]
    for sequence in sequences:
        line.add(sequence)
    return line, prefixes, sequences


def test_prompts_that_could_share_nothing_come_in_their_order() -> None:
    line, _, sequences = line_of([1] * 9, [2] * 3, [3] * 9, [4] * 3)
    assert [line.admit(num_slots=4) for _ in sequences] == sequences


def test_who_waits_for_a_beginning_keeps_its_slot() -> None:
    line, prefixes, (first, second, other) = line_of([1] * 9, [1] * 9, [2] * 9)
    assert line.admit(num_slots=2) is first
    prefixes.promise(first, num_tokens=9)
    assert line.admit(num_slots=1) is None
    line.begin_step()
    prefixes.begin_step()
    assert [line.admit(num_slots=2), line.admit(num_slots=1)] == [second, other]


@settings(max_examples=60)
@given(
    prompts=st.lists(st.lists(st.sampled_from([97, 98, 99]), min_size=1, max_size=7), max_size=24),
    slots=st.integers(1, 6),
    budget=st.integers(1, 40),
    spare=st.integers(0, 20),
)
def test_caching_never_computes_more_of_the_prompts(
    prompts: list[list[int]], slots: int, budget: int, spare: int
) -> None:
    requests = [ask(list(np.repeat(prompt, 4)), index=i, max_tokens=1) for i, prompt in enumerate(prompts)]
    sizes = {"max_num_seqs": slots, "max_num_batched_tokens": budget, "max_model_len": 32, "num_blocks": 8 + spare}
    work = []
    for prefix_caching in (False, True):
        engine = checked_engine(
            model=PagedModel(TABLE, block_size=4), block_size=4, prefix_caching=prefix_caching, **sizes
        )
        outputs = [token_ids_of(record) for record in serve(engine, requests)]
        work.append((outputs, sum(plan.num_tokens for plan in plans_of(engine))))
    assert work[1][0] == work[0][0]
    assert work[1][1] <= work[0][1]
