"""Forward passes of a wanted size, over sequences that nobody asked for."""

from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np

from batchspec.blocks import num_blocks_for
from batchspec.engine import EngineCore
from batchspec.params import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan

__all__ = ["filling_plans", "make_plan"]


def make_plan(core: EngineCore, tokens: list[int], *, rows: int, context: int, width: int) -> StepPlan:
    """Return a pass of decoding sequences, all of one length.

    Where the pool is smaller than what they would own, they share blocks: reading them costs the same.

    Args:
        core: whose pool and context the pass is for.
        tokens: what the sequences are made of, over and over.
        rows: of the pass.
        context: tokens of each sequence, the newest included, which is the first row to compute.
        width: rows of each sequence, the last but fewer if they do not come out even: 1 + draft length.
    """
    num_blocks = num_blocks_for(context + width, block_size=core.scheduler.pool.block_size)
    numbers = cycle(range(core.scheduler.pool.num_blocks))
    stream = cycle(tokens)
    chunks = []
    for first in range(0, rows, width):
        draft = list(islice(stream, min(width, rows - first) - 1))
        sequence = _sequence(core, list(islice(stream, context)), num_more=width + 1)
        sequence.blocks = list(islice(numbers, num_blocks))
        sequence.num_computed_tokens = context - 1
        chunks.append(_chunk(sequence, start=context - 1, draft=draft))
    return StepPlan(chunks=chunks)


def filling_plans(core: EngineCore, tokens: list[int], *, context: int) -> Iterator[StepPlan]:
    """Yield passes that write to every block of the pool: what stands in untouched memory is slow to compute with."""
    pool = core.scheduler.pool
    per_plan = max(1, context // pool.block_size)
    for first in range(0, pool.num_blocks, per_plan):
        blocks = list(range(first, min(first + per_plan, pool.num_blocks)))
        sequence = _sequence(core, list(islice(cycle(tokens), len(blocks) * pool.block_size)), num_more=1)
        sequence.blocks = blocks
        yield StepPlan(chunks=[_chunk(sequence, start=0, draft=[])])


def _sequence(core: EngineCore, tokens: list[int], *, num_more: int) -> Sequence:
    return Sequence.start(
        prompt=tokens,
        max_num_tokens=len(tokens) + num_more,
        context_limit=core.desk.limits.max_model_len,
        sampling=SamplingParams(temperature=0.0, ignore_eos=True),
        stop_ids=frozenset(),
        queued=0.0,
    )


def _chunk(sequence: Sequence, *, start: int, draft: list[int]) -> Chunk:
    known = sequence.tokens[start : sequence.num_tokens]
    token_ids = np.concatenate([known, np.array(draft, dtype=np.int64)])
    return Chunk(sequence=sequence, start=start, token_ids=token_ids, draft=draft, samples=True)
