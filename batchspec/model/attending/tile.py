"""Attention of a tile: some rows of one chunk with all the query heads that share a key head.

They share every block that is loaded. The heads of a row follow each other: query ``q`` of a tile is head ``q % group``
of row ``q // group``.
"""

from typing import Any

import numpy as np

from batchspec.compiled import compiled, inner
from batchspec.model.attending.mixture import mix
from batchspec.model.attending.products import TILE
from batchspec.model.attending.room import STEP, seen, whole_strips
from batchspec.model.attending.scores import score
from batchspec.model.attending.softmax import weigh
from batchspec.model.attending.stored import put

__all__ = ["attend_tile"]


@inner
def attend_tile(call: Any, room: Any, first: int, last: int, kv_head: int) -> None:
    """Write the output of rows [first, last), all of one chunk, those heads that share a key head."""
    begin, end = seen(call, first)
    common_begin, common_end = begin, end
    for row in range(first + 1, last):
        row_begin, row_end = seen(call, row)
        begin, end = min(begin, row_begin), max(end, row_end)
        common_begin, common_end = max(common_begin, row_begin), min(common_end, row_end)
    origin = begin // TILE * TILE
    num_blocks = (end - 1) // call.block_size + 1
    for i in range(num_blocks + STEP):
        room.blocks[i] = call.tables[call.row_chunk[first], min(i, num_blocks - 1)] * call.num_kv_heads + kv_head
    _take(call, room, first, last, kv_head)
    score(call, room, (last - first) * call.group, origin, end)
    _weigh(call, room, first, last, kv_head, origin)
    mix(call, room, first, last, origin, common_begin, max(common_begin, common_end))
    _give(call, room, first, last, kv_head)


@compiled(inline="always")
def _take(call: Any, room: Any, first: int, last: int, kv_head: int) -> None:
    """Take the queries, scaled."""
    at = 0
    for row in range(first, last):
        for head in range(kv_head * call.group, (kv_head + 1) * call.group):
            _scale(call.query[row, head], call.scale, room.query[at : at + call.dim])
            at += call.dim


@compiled(inline="always")
def _weigh(call: Any, room: Any, first: int, last: int, kv_head: int, origin: int) -> None:
    """Turn the scores of each query that its row sees into weights."""
    q = 0
    for row in range(first, last):
        begin, end = seen(call, row)
        for head in range(kv_head * call.group, (kv_head + 1) * call.group):
            sink = call.sinks[head] if len(call.sinks) else np.float32(-np.inf)
            room.inverses[q] = weigh(room.scores, q * room.width + begin - origin, end - begin, call.softcap, sink)
            q += 1


@compiled(inline="always")
def _give(call: Any, room: Any, first: int, last: int, kv_head: int) -> None:
    """Write the sums, made averages."""
    breadth = whole_strips(call.value_dim)
    q = 0
    for row in range(first, last):
        for head in range(kv_head * call.group, (kv_head + 1) * call.group):
            inverse, target = room.inverses[q], call.out[row, head]
            for i in range(call.value_dim):
                put(target, i, room.sums[q * breadth + i] * inverse)
            q += 1


@inner
def _scale(source: Any, factor: float, target: Any) -> None:
    """Write numbers times a factor."""
    for i in range(len(target)):
        target[i] = source[i] * factor
