"""The values in the pages, mixed by the weights of a tile's queries."""

from typing import Any

from batchspec.compiled import compiled, inner
from batchspec.model.attending.products import TILE, Stack, products
from batchspec.model.attending.room import STEP, seen, whole_strips
from batchspec.model.attending.stored import get

__all__ = ["mix"]


@compiled(inline="always")
def mix(call: Any, room: Any, first: int, last: int, origin: int, begin: int, end: int) -> None:
    """Add up values times weights by rising position: those that all rows see for all at once, others row by row.

    All of rows [first, last) see [begin, end), which may be empty; the first column of the weights is ``origin``.
    """
    room.sums[: (last - first) * call.group * whole_strips(call.value_dim)] = 0.0
    for row in range(first, last):
        row_begin, row_end = seen(call, row)
        _add(call, room, (row - first) * call.group, call.group, origin, row_begin, min(row_end, begin))
    _add(call, room, first - first, (last - first) * call.group, origin, begin, end)
    for row in range(first, last):
        row_begin, row_end = seen(call, row)
        _add(call, room, (row - first) * call.group, call.group, origin, max(row_begin, end), row_end)


@inner
def _add(call: Any, room: Any, q: int, height: int, origin: int, begin: int, end: int) -> None:
    """Add the values of positions [begin, end), times their weights, to the sums of ``height`` queries from q on."""
    size, dim, breadth = call.block_size, call.value_dim, whole_strips(call.value_dim)
    values = Stack(call.values, room.blocks, size * dim, size, -(-STEP // size))
    gathered = Stack(room.strip, room.blocks, 0, STEP, 0)
    for start in range(begin, end, STEP):
        depth = min(STEP, end - start)
        weights = q * room.width + start - origin
        for d in range(0, dim, TILE):
            a, a_row, c, c_at = room.scores, room.width, room.sums, q * breadth + d
            if d + TILE > dim:
                _gather(call, room, start, depth, d)
                none = start - start
                products(height, a, weights, a_row, gathered, none, none, none, depth, c, c_at, breadth)
            else:
                block, row = start // size, start % size
                products(height, a, weights, a_row, values, block, row, d * size, depth, c, c_at, breadth)


@inner
def _gather(call: Any, room: Any, start: int, depth: int, whole: int) -> None:
    """Write the last numbers of some positions' values, which do not fill a strip, into the rows of one."""
    size, rest = call.block_size, call.value_dim - whole
    for i in range(depth):
        block, offset = room.blocks[(start + i) // size], (start + i) % size
        at = block * size * call.value_dim + size * whole + offset * rest
        for d in range(rest):
            room.strip[i * TILE + d] = get(call.values, at + d)
