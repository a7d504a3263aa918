"""Attention over cache pages on the CPU.

Each row's result depends on that row and on its own pages alone, in a fixed order of operations: not on its
neighbours, on the size of the chunk it came in or on the number of threads. That is what makes the text independent
of batching and of drafts, to the last bit in float32.

Pages are laid out so that sixteen results are computed from numbers that lie side by side. A block has, for each key
head, its keys in strips of TILE positions: first all positions' first number, then their second; and its values in
strips of TILE numbers: first those of the first position, then of the second. Where the block size or Dv is no multiple
of TILE the last strip is narrower.
"""

from typing import Any

import numpy as np

from batchspec.compiled import compiled, inner
from batchspec.model.attending.lanes import claim
from batchspec.model.attending.products import TILE
from batchspec.model.attending.room import Call, make_room
from batchspec.model.attending.stored import put
from batchspec.model.attending.tile import attend_tile

__all__ = ["attend_some", "store"]

_QUERIES = 24  # of a tile: four times what the registers hold, while their scores stay in the cache


@compiled(nogil=True)
def store(key: Any, value: Any, first_key: int, first_value: int, slots: Any, keys: Any, values: Any) -> None:
    """Write rows' keys and values into the pages: see ``attend_some`` for these.

    Args:
        key: float32 (rows, heads, D), of which the key heads begin at ``first_key``.
        value: float32 (rows, heads, Dv), of which the key heads begin at ``first_value``.
        first_key: see there.
        first_value: see there.
        slots: int64 (rows,), ``block * block size + offset``; further rows are left out.
        keys: the pages.
        values: the pages.
    """
    num_heads, dim, value_dim = keys.shape[1], key.shape[2], value.shape[2]
    size = keys.shape[2] // dim
    all_keys, all_values = keys.reshape(keys.size), values.reshape(values.size)
    for row in range(len(slots)):
        block, offset = slots[row] // size, slots[row] % size
        breadth = min(TILE, size - offset // TILE * TILE)
        for head in range(num_heads):
            page = block * num_heads + head
            at = page * size * dim + offset // TILE * TILE * dim + offset % TILE
            line = key[row, first_key + head]
            for d in range(dim):
                put(all_keys, at + d * breadth, line[d])
            line = value[row, first_value + head]
            for begin in range(0, value_dim, TILE):
                width = min(TILE, value_dim - begin)
                at = page * size * value_dim + begin * size + offset * width
                for d in range(width):
                    put(all_values, at + d, line[begin + d])


@inner
def _tiles(row_chunk: Any, most: int) -> Any:
    """Return where tiles of at most so many rows of one chunk begin, and behind them the number of rows."""
    starts = np.empty(len(row_chunk) + 1, dtype=np.int64)
    count = 0
    for row in range(len(row_chunk)):
        if count == 0 or row_chunk[row] != row_chunk[row - 1] or row - starts[count - 1] == most:
            starts[count] = row
            count += 1
    starts[count] = len(row_chunk)
    return starts[: count + 1]


@compiled(nogil=True)
def attend_some(
    counter: Any,
    query: Any,
    keys: Any,
    values: Any,
    tables: Any,
    row_chunk: Any,
    row_position: Any,
    window: int,
    scale: float,
    softcap: float,
    sinks: Any,
    out: Any,
) -> None:
    """Write softmax(scale * query . keys) . values for rows into ``out``; causal, grouped heads not repeated.

    All threads that call it with one counter share the work: each takes tiles until none is left.

    Args:
        counter: int64 (1,), 0 at first.
        query: float32 (rows, query heads, D); further heads are left out.
        keys: (blocks, key heads, block size * D), the new rows' keys already written: float32, or bfloat16 as uint16.
        values: (blocks, key heads, block size * Dv), in the same type.
        tables: int32 (chunks, most blocks), each chunk's block numbers.
        row_chunk: int32 (rows,), the chunk of each row; -1 for padding rows, whose output is zero.
        row_position: int32 (rows,), the position of each row in its sequence; it sees ``[0, position]``.
        window: positions that a row sees at the most, its own included; 0 for all.
        scale: factor on the scores.
        softcap: scores become ``softcap * tanh(score / softcap)``; 0 for off.
        sinks: float32 (query heads,) of extra logits that take probability and carry no value; length 0 for none.
        out: (rows, query heads, Dv), float32, or bfloat16 as uint16; rows may lie apart.
    """
    num_kv_heads = keys.shape[1]
    group = out.shape[1] // num_kv_heads
    most = max(1, _QUERIES // group)
    call = Call(
        query,
        keys.reshape(keys.size),
        values.reshape(values.size),
        tables,
        row_chunk,
        row_position,
        sinks,
        out,
        num_kv_heads,
        group,
        query.shape[2],
        out.shape[2],
        keys.shape[2] // query.shape[2],
        window,
        np.float32(scale),
        np.float32(softcap),
    )
    starts = _tiles(row_chunk, most)
    room = make_room(call, most * group)
    num_tasks = (len(starts) - 1) * num_kv_heads
    task = claim(counter)
    while task < num_tasks:
        tile, kv_head = task // num_kv_heads, task % num_kv_heads
        first, last = starts[tile], starts[tile + 1]
        if row_chunk[first] < 0:
            out[first:last, kv_head * group : (kv_head + 1) * group] = 0
        else:
            attend_tile(call, room, first, last, kv_head)
        task = claim(counter)
