"""The scores of a tile's queries against the keys in the pages."""

from typing import Any

import numpy as np

from batchspec.compiled import compiled, inner
from batchspec.model.attending.products import TILE, Stack, products
from batchspec.model.attending.room import whole_strips
from batchspec.model.attending.stored import get

__all__ = ["score"]


@compiled(inline="always")
def score(call: Any, room: Any, num_queries: int, origin: int, end: int) -> None:
    """Write the scores of positions [origin, end), and anything in the rest of the last strip."""
    size, dim, width = call.block_size, call.dim, room.width
    keys, gathered = Stack(call.keys, room.blocks, size * dim, dim, 1), Stack(room.strip, room.blocks, 0, dim, 0)
    zero = np.int64(0)
    for q in range(num_queries):
        room.scores[q * width : q * width + whole_strips(end - origin)] = 0.0
    for start in range(origin, end, TILE):
        at = start - origin
        if size % TILE:
            _gather(call, room, start, min(start + TILE, end))
            products(num_queries, room.query, zero, dim, gathered, zero, zero, zero, dim, room.scores, at, width)
        else:
            block, strip = start // size, start % size * dim
            products(num_queries, room.query, zero, dim, keys, block, zero, strip, dim, room.scores, at, width)


@inner
def _gather(call: Any, room: Any, begin: int, end: int) -> None:
    """Write the keys of positions [begin, end) into the columns of a strip."""
    size = call.block_size
    for position in range(begin, end):
        offset = position % size
        breadth = min(TILE, size - offset // TILE * TILE)
        at = room.blocks[position // size] * size * call.dim + offset // TILE * TILE * call.dim + offset % TILE
        for d in range(call.dim):
            room.strip[d * TILE + position - begin] = get(call.keys, at + d * breadth)
