"""The arrays of a step: they travel as they are, and say where every row belongs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from batchspec.model.device.freight import Arrays, join, split
from batchspec.model.device.layout import lay_out
from batchspec.model.device.shape import StepShape, exact_shape
from batchspec.model.device.span import Span

from .generating import CPU

BLOCK_SIZE = 4
TRASH = 1000


def spans_from(lengths: list[tuple[int, int]]) -> list[Span]:
    """Return a span for each (tokens so far, rows of this step); tokens are numbered through."""
    spans, block, token = [], 0, 1
    for total, new in lengths:
        count = -(-total // BLOCK_SIZE)
        spans.append(
            Span(
                token_ids=np.arange(token, token + new),
                start=total - new,
                blocks=list(range(block, block + count))[::-1],
            )
        )
        block, token = block + count, token + new
    return spans


def arrays_of(spans: list[Span], shape: StepShape) -> Arrays:
    """Return the step's arrays, all rows wanted."""
    return lay_out(spans, shape, wanted=np.arange(shape.num_rows), block_size=BLOCK_SIZE, trash_slot=TRASH)


LENGTHS = st.lists(
    st.integers(1, 90).flatmap(lambda total: st.tuples(st.just(total), st.integers(1, total))), min_size=1, max_size=5
)


@given(LENGTHS, st.integers(0, 20), st.integers(0, 3), st.integers(0, 3))
def test_every_row_is_where_it_belongs(
    lengths: list[tuple[int, int]], num_padding: int, num_more: int, num_wider: int
) -> None:
    spans = spans_from(lengths)
    exact = exact_shape(spans, row_counts=lambda num_rows: num_rows + num_padding)
    shape = StepShape(
        num_sequences=exact.num_sequences if exact.most_rows == 1 else exact.num_sequences + num_more,
        num_rows=exact.num_rows,
        most_rows=exact.most_rows,
        width=exact.width + num_wider,
    )
    arrays = arrays_of(spans, shape)
    row = 0
    for number, (span, (total, new)) in enumerate(zip(spans, lengths, strict=True)):
        assert arrays["row_starts"][number] == row
        assert arrays["lengths"][number] == total
        for i in range(new):
            position = total - new + i
            assert arrays["token_ids"][row] == span.token_ids[i]
            assert arrays["positions"][row] == position
            assert arrays["slots"][row] == span.blocks[position // BLOCK_SIZE] * BLOCK_SIZE + position % BLOCK_SIZE
            assert not arrays["is_padding"][row]
            tile, offset = divmod(int(arrays["places"][row]), shape.tile_rows)
            assert arrays["tile_sequence"][tile] == number
            assert arrays["tile_first"][tile] + offset == row
            row += 1
    assert (arrays["slots"][row:] == TRASH).all()
    assert arrays["is_padding"][row:].all()
    assert (arrays["lengths"][len(spans) :] == 0).all()
    assert (np.diff(arrays["key_starts"]) == arrays["lengths"]).all()
    counts = np.diff(arrays["row_starts"])
    assert counts.max() <= shape.most_rows
    assert (counts[len(spans) :] == (1 if shape.most_rows == 1 else 0)).all()
    assert (arrays["tile_first"] < shape.num_rows).all()


def test_a_step_of_nothing_but_padding() -> None:
    arrays = arrays_of([], StepShape(num_sequences=3, num_rows=16, most_rows=4, width=2))
    assert arrays["is_padding"].all()
    assert not arrays["lengths"].any()


def test_steps_of_one_shape_have_arrays_of_one_shape() -> None:
    shape = StepShape(num_sequences=8, num_rows=32, most_rows=4, width=6)
    steps = [[(5, 1)], [(9, 4), (20, 2), (3, 3)], [(7, 4)] * 8, []]
    shapes = [{name: array.shape for name, array in arrays_of(spans_from(step), shape).items()} for step in steps]
    assert all(each == shapes[0] for each in shapes)


def test_a_cut_of_the_rows_into_tiles_leaves_none_out() -> None:
    spans = spans_from([(80, 70), (3, 1), (64, 64)])
    arrays = arrays_of(spans, exact_shape(spans, row_counts=lambda num_rows: num_rows))
    assert arrays["tile_sequence"].tolist() == [0, 0, 0, 1, 2, 2]
    assert arrays["tile_first"].tolist() == [0, 32, 64, 70, 71, 103]


@given(
    st.dictionaries(
        st.text(max_size=3),
        st.tuples(st.sampled_from([np.int64, np.int32, np.bool_]), st.lists(st.integers(0, 3), max_size=2)),
        max_size=6,
    )
)
def test_what_is_joined_comes_apart_as_it_was(kinds: dict[str, tuple[type, list[int]]]) -> None:
    random = np.random.default_rng(0)
    arrays: Arrays = {name: random.integers(0, 2, size=size).astype(dtype) for name, (dtype, size) in kinds.items()}
    joined = join(arrays, device=CPU)
    assert len(joined) % 8 == 0
    for name, tensor in split(joined, like=arrays).items():
        assert tensor.numpy().dtype == arrays[name].dtype
        assert np.array_equal(tensor.numpy(), arrays[name])
