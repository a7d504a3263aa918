"""Matrix products with packed weights on the CPU: a row's result is a chain of fused sums, whatever its neighbours.

Weights lie in strips of sixteen outputs, for each input (or pair of them) its sixteen weights (or pairs) side by side.
Stored in bfloat16 they stay so, and become float32 where they are used, unless rows are bfloat16, too: nothing is lost,
and half the memory is read. Each result adds up its products with the inputs in order, so that its bits depend on
nothing but the row and the weights.
"""

from typing import Any, NamedTuple

from batchspec.compiled import compiled, inner
from batchspec.model.attending.lanes import after, claim, fetch
from batchspec.model.strips.heights import HIGHEST, MOST_OF_FEW, height_of
from batchspec.model.strips.keeping import keep, keeps
from batchspec.model.strips.processor import HAS_WIDE_VECTORS
from batchspec.model.strips.sixteen import WIDTH, add_products, inputs_at_once, nothing, store_rows, weights

__all__ = ["STRIP", "multiply_some", "rows_at_once", "share_strips", "take_strip"]

STRIP = WIDTH
_BLOCK = 1 << 16  # numbers of the rows that are passed over again and again, in the next cache
_TASK = 4  # strips that a thread takes at once
_AHEAD = 1024  # weights ahead to fetch what will be needed soon


class Products(NamedTuple):
    """Where products are kept: a flat array, and how many each row has."""

    out: Any
    breadth: int


@keeps(Products)
def _keep_products(sums: Any, target: Any, row: int, strip: int) -> None:
    store_rows(sums, target.out, row * target.breadth + strip * STRIP, target.breadth)


@inner
def _few_rows(sums: Any, rows: Any, row: int, apart: int, strips: Any, strip: int, num_steps: int, target: Any) -> None:
    """Multiply a few rows with a strip."""
    size = STRIP * inputs_at_once(rows)
    at, begin, step = row * apart, strip * num_steps * size, 0
    while step < num_steps:
        here = begin + step * size
        fetch(strips, here + _AHEAD)
        sums = add_products(sums, rows, at + step * inputs_at_once(rows), apart, weights(rows, strips, here))
        step = after(step)
    keep(sums, target, row, strip)


@inner
def _up_to_six(
    height: int, rows: Any, row: int, apart: int, strips: Any, strip: int, num_steps: int, target: Any
) -> None:
    one = (nothing(rows, strips),)
    two = one + one
    three, four = two + one, two + two
    if height == 1:
        _few_rows(one, rows, row, apart, strips, strip, num_steps, target)
    elif height == 2:
        _few_rows(two, rows, row, apart, strips, strip, num_steps, target)
    elif height == 3:
        _few_rows(three, rows, row, apart, strips, strip, num_steps, target)
    elif height == 4:
        _few_rows(four, rows, row, apart, strips, strip, num_steps, target)
    elif height == 5:
        _few_rows(three + two, rows, row, apart, strips, strip, num_steps, target)
    else:
        _few_rows(three + three, rows, row, apart, strips, strip, num_steps, target)


@inner
def _up_to_sixteen(
    height: int, rows: Any, row: int, apart: int, strips: Any, strip: int, num_steps: int, target: Any
) -> None:
    one = (nothing(rows, strips),)
    two = one + one
    four = two + two
    eight = four + four
    if height == 8:
        _few_rows(eight, rows, row, apart, strips, strip, num_steps, target)
    elif height == 12:
        _few_rows(eight + four, rows, row, apart, strips, strip, num_steps, target)
    else:
        _few_rows(eight + eight, rows, row, apart, strips, strip, num_steps, target)


@inner
def take_strip(
    first: int, end: int, rows: Any, apart: int, strips: Any, strip: int, num_steps: int, target: Any
) -> None:
    """Multiply rows with a strip, as many at once as registers allow.

    Args:
        first: of the rows.
        end: behind the last one.
        rows: flat.
        apart: numbers between the beginnings of two rows.
        strips: flat.
        strip: which.
        num_steps: of inputs, or pairs of them.
        target: what ``keep`` knows.
    """
    row = first
    while row < end:
        height = height_of(end - row)
        if height <= MOST_OF_FEW:
            _up_to_six(height, rows, row, apart, strips, strip, num_steps, target)
        elif HAS_WIDE_VECTORS:  # a constant: without them this is not compiled
            _up_to_sixteen(height, rows, row, apart, strips, strip, num_steps, target)
        row += height


@inner
def rows_at_once(num_rows: int, num_steps: int) -> int:
    """Return how many rows to multiply with one strip after another before the next ones."""
    return max(HIGHEST, _BLOCK // num_steps // HIGHEST * HIGHEST) if num_rows > 4 * HIGHEST else num_rows


@inner
def share_strips(counter: Any, rows: Any, num_rows: int, apart: int, strips: Any, shape: Any, target: Any) -> None:
    """Multiply rows with all strips, or with what other threads that do the same leave of them.

    Args:
        counter: int64 (1,), 0 at first, the same one for all threads.
        rows: flat.
        num_rows: how many.
        apart: as for ``take_strip``.
        strips: flat.
        shape: (number of strips, steps).
        target: as for ``take_strip``.
    """
    num_strips, num_steps = shape
    height = rows_at_once(num_rows, num_steps)
    num_blocks = (num_rows + height - 1) // height
    num_groups = (num_strips + _TASK - 1) // _TASK
    task = claim(counter)
    while task < num_blocks * num_groups:
        first, begin = task // num_groups * height, task % num_groups * _TASK
        for strip in range(begin, min(begin + _TASK, num_strips)):
            end = min(first + height, num_rows)
            take_strip(first, end, rows, apart, strips, strip, num_steps, target)
        task = claim(counter)


@compiled(nogil=True)
def multiply_some(counter: Any, rows: Any, strips: Any, out: Any) -> None:
    """Write ``rows . weights`` into ``out``; all threads that call it with one counter share the work.

    Args:
        counter: int64 (1,), 0 at first.
        rows: float32 (rows, at least as many numbers as inputs), or bfloat16 as uint16.
        strips: bfloat16 as uint16, or float32, (strips, inputs, STRIP), or (strips, inputs / 2, STRIP, 2) with rows in
            bfloat16.
        out: float32 (rows, strips * STRIP).
    """
    num_rows, apart = rows.shape
    shape = strips.shape[0], strips.shape[1]
    target = Products(out.reshape(out.size), out.shape[1])
    share_strips(counter, rows.reshape(rows.size), num_rows, apart, strips.reshape(strips.size), shape, target)
