"""The matrix product of the attention kernel: a few rows by sixteen columns, the sums held in registers."""

from typing import Any, NamedTuple

from batchspec.compiled import inner
from batchspec.model.attending.lanes import after, fetch
from batchspec.model.strips.heights import MOST_OF_FEW, height_of
from batchspec.model.strips.processor import HAS_WIDE_VECTORS
from batchspec.model.strips.sixteen import WIDTH, add_products, load_rows, nothing, store_rows, weights

__all__ = ["TILE", "Stack", "products"]

TILE = WIDTH


class Stack(NamedTuple):
    """A matrix whose rows lie in blocks that are scattered over an array; it is looked at in strips of TILE columns.

    Attributes:
        numbers: float32, or bfloat16 as uint16, flat.
        blocks: int64, which blocks the rows are in, some more of them behind the last.
        length: numbers in a block.
        size: rows in a block.
        ahead: how many blocks ahead to fetch what will be needed soon.
    """

    numbers: Any
    blocks: Any
    length: int
    size: int
    ahead: int


@inner
def _products(
    sums: Any,
    a: Any,
    a_at: int,
    a_row: int,
    stack: Any,
    block: int,
    row: int,
    strip: int,
    depth: int,
    c: Any,
    c_at: int,
    c_row: int,
) -> None:
    """Do ``products`` for as many rows as there are sums; what these are at first does not matter."""
    sums = load_rows(sums, c, c_at, c_row)
    done = 0
    while done < depth:
        begin = stack.blocks[block] * stack.length + strip
        ahead = stack.blocks[block + stack.ahead] * stack.length + strip - begin
        count = min(stack.size - row, depth - done)
        i = 0
        while i < count:
            here = begin + (row + i) * TILE
            fetch(stack.numbers, here + ahead)
            sums = add_products(sums, a, a_at + done + i, a_row, weights(a, stack.numbers, here))
            i = after(i)
        done += count
        block += 1
        row = 0
    store_rows(sums, c, c_at, c_row)


@inner
def _up_to_six(
    height: int,
    a: Any,
    a_at: int,
    a_row: int,
    stack: Any,
    block: int,
    row: int,
    strip: int,
    depth: int,
    c: Any,
    c_at: int,
    c_row: int,
) -> None:
    one = (nothing(a, stack.numbers),)  # the sums of a row; only how many there are matters
    two = one + one
    three, four = two + one, two + two
    if height == 1:
        _products(one, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)
    elif height == 2:
        _products(two, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)
    elif height == 3:
        _products(three, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)
    elif height == 4:
        _products(four, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)
    elif height == 5:
        _products(three + two, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)
    else:
        _products(three + three, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)


@inner
def _up_to_sixteen(
    height: int,
    a: Any,
    a_at: int,
    a_row: int,
    stack: Any,
    block: int,
    row: int,
    strip: int,
    depth: int,
    c: Any,
    c_at: int,
    c_row: int,
) -> None:
    one = (nothing(a, stack.numbers),)
    two = one + one
    four = two + two
    eight = four + four
    if height == 8:
        _products(eight, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)
    elif height == 12:
        _products(eight + four, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)
    else:
        _products(eight + eight, a, a_at, a_row, stack, block, row, strip, depth, c, c_at, c_row)


@inner
def products(
    height: int,
    a: Any,
    a_at: int,
    a_row: int,
    stack: Any,
    block: int,
    row: int,
    strip: int,
    depth: int,
    c: Any,
    c_at: int,
    c_row: int,
) -> None:
    """Compute ``c[q, :TILE] += sum over i of a[q, i] * b[i, :TILE]`` for q < height and i < depth.

    Each number of c is summed up by itself with i rising, so that it does not matter which are computed together.

    Args:
        height: rows of a and c.
        a: float32, flat.
        a_at: where the first number of a is.
        a_row: how far the rows of a are from each other.
        stack: has a strip in which b is.
        block: which of the stack's blocks has the first row of b.
        row: the first row of b in this block.
        strip: where the strip begins in each block.
        depth: rows of b.
        c: float32, flat.
        c_at: where the first number of c is.
        c_row: how far the rows of c are from each other.
    """
    done = 0
    while done < height:
        part = height_of(height - done)
        x, z = a_at + done * a_row, c_at + done * c_row
        if part <= MOST_OF_FEW:
            _up_to_six(part, a, x, a_row, stack, block, row, strip, depth, c, z, c_row)
        elif HAS_WIDE_VECTORS:  # a constant: without them this is not compiled
            _up_to_sixteen(part, a, x, a_row, stack, block, row, strip, depth, c, z, c_row)
        done += part
