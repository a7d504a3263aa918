"""Shapes that steps are rounded up to: they hold the step, and there are few."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.model.device.buckets import Buckets
from batchspec.model.device.layout import lay_out
from batchspec.model.device.span import spans_of
from batchspec.request import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan

BLOCK_SIZE = 4


def chunk_of(
    num_drafted: int, *, num_blocks: int = 2, known: int = 1, samples: bool = True, prompt_rows: int = 0
) -> Chunk:
    """Return a chunk at the end of a sequence that fills its blocks."""
    length = num_blocks * BLOCK_SIZE
    sequence = Sequence.start(
        prompt=[1] * length,
        max_num_tokens=length,
        context_limit=length,
        sampling=SamplingParams(),
        stop_ids=frozenset(),
        queued=0.0,
    )
    sequence.blocks = list(range(num_blocks))
    size = known + num_drafted
    return Chunk(
        sequence=sequence,
        start=length - size,
        token_ids=sequence.tokens[length - size :],
        draft=[1] * num_drafted,
        samples=samples,
        num_prompt_rows=prompt_rows,
    )


def buckets(*, most_sequences: int = 40, most_drafted: int = 3, is_full: bool = False) -> Buckets:
    return Buckets(
        most_sequences=most_sequences,
        most_drafted=most_drafted,
        most_tokens=2048,
        most_blocks=100,
        has_full_tables=is_full,
    )


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 100)), min_size=1, max_size=40),
    st.integers(40, 70),
    st.booleans(),
)
def test_a_bucket_holds_the_step(chunks: list[tuple[int, int]], most_sequences: int, is_full: bool) -> None:
    plan = StepPlan(chunks=[chunk_of(drafted, num_blocks=width) for drafted, width in chunks])
    shape = buckets(most_sequences=most_sequences, is_full=is_full).fitting(plan)
    assert shape is not None
    assert shape.num_sequences >= len(chunks)
    assert shape.num_rows % 16 == 0
    assert shape.num_rows >= plan.num_tokens
    assert shape.most_rows in (1, 4)
    assert shape.most_rows > 1 or shape.num_rows == shape.num_sequences
    wanted = np.arange(shape.num_rows)
    arrays = lay_out(spans_of(plan), shape, wanted=wanted, block_size=BLOCK_SIZE, trash_slot=0)
    assert len(arrays["tile_sequence"]) == shape.num_sequences
    assert arrays["is_padding"].sum() == shape.num_rows - plan.num_tokens


def test_there_are_few() -> None:
    shapes = {
        buckets(most_sequences=64).fitting(StepPlan(chunks=[chunk_of(min(3, i)) for i in range(num_sequences)]))
        for num_sequences in range(1, 65)
    }
    assert len(shapes) == 8


@pytest.mark.parametrize(
    "chunk",
    [
        chunk_of(0, known=3),
        chunk_of(0, samples=False),
        chunk_of(0, prompt_rows=1),
        chunk_of(4),
        chunk_of(0, num_blocks=101),
    ],
    ids=["prefill", "part of a prefill", "prompt rows", "a longer draft", "a longer sequence"],
)
def test_what_has_no_bucket(chunk: Chunk) -> None:
    assert buckets().fitting(StepPlan(chunks=[chunk_of(0), chunk])) is None


def test_more_sequences_than_there_can_be_have_no_bucket() -> None:
    assert buckets(most_sequences=2).fitting(StepPlan(chunks=[chunk_of(0)] * 3)) is None


def test_drafts_longer_than_a_tile_have_no_bucket() -> None:
    long = buckets(most_drafted=40)
    assert long.fitting(StepPlan(chunks=[chunk_of(2)])) is None
    assert long.fitting(StepPlan(chunks=[chunk_of(0)])) is not None
    assert long.largest.most_rows == 1


def test_the_largest_has_the_most_rows() -> None:
    largest = buckets(most_sequences=40).largest
    assert (largest.num_sequences, largest.num_rows, largest.most_rows, largest.width) == (48, 160, 4, 16)
    full = buckets(most_sequences=3, most_drafted=0, is_full=True).largest
    assert (full.num_sequences, full.num_rows, full.most_rows, full.width) == (16, 16, 1, 100)
