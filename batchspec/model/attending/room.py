"""What a tile of rows is computed from and where: one value each to pass on."""

from typing import Any, NamedTuple

import numpy as np

from batchspec.compiled import inner
from batchspec.model.attending.products import TILE

__all__ = ["STEP", "Call", "Room", "make_room", "seen", "whole_strips"]

STEP = 64  # positions whose values are mixed at once, while the next are fetched


class Call(NamedTuple):
    """The arguments of ``attend``, pages flat, and the sizes of everything."""

    query: Any
    keys: Any
    values: Any
    tables: Any
    row_chunk: Any
    row_position: Any
    sinks: Any
    out: Any
    num_kv_heads: int
    group: int
    dim: int
    value_dim: int
    block_size: int
    window: int
    scale: Any
    softcap: Any


class Room(NamedTuple):
    """Where a thread computes its tiles.

    Attributes:
        query: float32 (queries, D), flat like the others; scaled.
        scores: float32 (queries, width), then weights; the first column is the first position of a strip of keys.
        sums: float32 (queries, Dv rounded up to whole strips) of values times weights.
        inverses: float32 (queries,), what makes the weights probabilities.
        strip: float32 (D or positions, TILE), where a strip is put together that does not lie so in the pages.
        blocks: int64, a key head's blocks among the blocks of all heads; the last again and again behind them.
        width: numbers in a row of scores.
    """

    query: Any
    scores: Any
    sums: Any
    inverses: Any
    strip: Any
    blocks: Any
    width: int


@inner
def whole_strips(number: int) -> int:
    """Round up to a multiple of TILE."""
    return -(-number // TILE) * TILE


@inner
def make_room(call: Any, num_queries: int) -> Any:
    """Return room for tiles of so many queries."""
    last = 0
    for position in call.row_position:
        last = max(last, position)
    width = whole_strips(last + 1) + 2 * TILE
    return Room(
        np.empty(num_queries * call.dim, dtype=np.float32),
        np.empty(num_queries * width, dtype=np.float32),
        np.empty(num_queries * whole_strips(call.value_dim), dtype=np.float32),
        np.empty(num_queries, dtype=np.float32),
        np.empty(max(call.dim, STEP) * TILE, dtype=np.float32),
        np.empty(call.tables.shape[1] + STEP, dtype=np.int64),
        width,
    )


@inner
def seen(call: Any, row: int) -> Any:
    """Return the range of positions that a row sees."""
    end = call.row_position[row] + 1
    return (max(0, end - call.window) if call.window > 0 else 0), end
