"""Between which limits the products of rows with a large weight lie, by products of integers.

These have eight bits of a weight and up to sixteen of a row, which takes half the memory traffic of 16-bit floats, and
fewer instructions.
"""

from typing import Any

from batchspec.compiled import compiled, inner
from batchspec.model.attending.lanes import after, claim, fetch
from batchspec.model.matmul import STRIP
from batchspec.model.screening.integers import add_pairs, keep_edges, pairs, zeros

__all__ = ["GROUP", "screen_some"]

GROUP = 4  # inputs that are multiplied before the loop goes round
_HIGHEST = 6  # rows at once: their twelve sums, the weights, a factor and a product fill sixteen registers
_BLOCK = 1 << 16  # numbers of the rows that are passed over again and again, in the next cache
_TASK = 4  # strips that a thread takes at once
_AHEAD = 2048  # weights ahead to fetch what will be needed soon


@inner
def _screen_rows(
    sums: Any, a: Any, depth: int, w: Any, strip: int, m: Any, r: Any, row: int, e: Any, num_strips: int
) -> None:
    """Screen a few rows with one strip."""
    i, begin, at = 0, row * depth, strip * depth * STRIP
    while i < depth:
        near = at + i * STRIP
        fetch(w, near + _AHEAD)
        sums = add_pairs(sums, a, begin + i, depth, pairs(w, near), pairs(w, near + STRIP))
        sums = add_pairs(sums, a, begin + i + 2, depth, pairs(w, near + 2 * STRIP), pairs(w, near + 3 * STRIP))
        i = after(i + GROUP - 1)
    keep_edges(sums, m, strip * 3 * STRIP, r, row, e, 2 * (row * num_strips + strip), 2 * num_strips)


@compiled(nogil=True)
def screen_some(counter: Any, integers: Any, row_measures: Any, strips: Any, measures: Any, edges: Any) -> None:
    """Write the limits of every strip; all threads that call it with one counter share the work.

    Args:
        counter: int64 (1,), 0 at first.
        integers: int16 (rows, inputs), the rows in their units.
        row_measures: float32 (rows, 3): unit, length and rest of each.
        strips: int8 (strips, inputs / 2, STRIP, 2), the weights in their units.
        measures: float32 (strips, 3, STRIP): unit, slack and size of each output.
        edges: float32 (rows, strips, 2), to hold the highest upper and the highest lower limit of a strip's products.
    """
    num_rows, depth = integers.shape
    num_strips = len(strips)
    a, w, m = integers.reshape(integers.size), strips.reshape(strips.size), measures.reshape(measures.size)
    r, e = row_measures.reshape(row_measures.size), edges.reshape(edges.size)
    one = (zeros(0), zeros(0))  # the pair of sums of a row
    two = one + one
    three, four = two + one, two + two
    height = max(_HIGHEST, 2 * _BLOCK // depth // _HIGHEST * _HIGHEST)
    num_blocks = (num_rows + height - 1) // height
    num_groups = (num_strips + _TASK - 1) // _TASK
    task = claim(counter)
    while task < num_blocks * num_groups:
        first = task // num_groups * height
        end = min(first + height, num_rows)
        begin = task % num_groups * _TASK
        for strip in range(begin, min(begin + _TASK, num_strips)):
            row = first
            while row < end:
                rest = end - row
                part = rest if rest <= _HIGHEST else (rest + 1) // 2 if rest <= 2 * _HIGHEST else _HIGHEST
                if part == 1:
                    _screen_rows(one, a, depth, w, strip, m, r, row, e, num_strips)
                elif part == 2:
                    _screen_rows(two, a, depth, w, strip, m, r, row, e, num_strips)
                elif part == 3:
                    _screen_rows(three, a, depth, w, strip, m, r, row, e, num_strips)
                elif part == 4:
                    _screen_rows(four, a, depth, w, strip, m, r, row, e, num_strips)
                elif part == 5:
                    _screen_rows(three + two, a, depth, w, strip, m, r, row, e, num_strips)
                else:
                    _screen_rows(three + three, a, depth, w, strip, m, r, row, e, num_strips)
                row += part
        task = claim(counter)
