"""A step's arrays on the host: what the rows are, where they belong, and what is only there to fill the shape."""

from collections.abc import Sequence as Many

import numpy as np
from numpy.typing import NDArray

from batchspec.model.device.freight import Arrays
from batchspec.model.device.shape import StepShape
from batchspec.model.device.span import Span

__all__ = ["lay_out"]


def lay_out(
    spans: Many[Span], shape: StepShape, *, wanted: NDArray[np.int64], block_size: int, trash_slot: int
) -> Arrays:
    """Return the arrays of a step, as ``DeviceRows`` describes them, and those that the network reads.

    Padding rows write their keys and values to the trash, padding sequences have no tokens. Where no sequence has more
    than one row every padding row is a sequence; else padding rows belong to none.

    Args:
        spans: one for each sequence; none at all for a step of nothing but padding.
        shape: must hold them.
        wanted: numbers of the rows whose logits are needed.
        block_size: tokens in a block.
        trash_slot: where padding rows are stored.
    """
    counts = _filled([len(span.token_ids) for span in spans], shape.num_sequences)
    starts = _filled([span.start for span in spans], shape.num_sequences)
    num_rows = int(counts.sum())
    sequence = np.repeat(np.arange(shape.num_sequences), counts)
    row_starts = np.arange(shape.num_sequences + 1) if shape.most_rows == 1 else _cumulative(counts)
    offset = np.arange(num_rows) - row_starts[sequence]
    positions = _filled(starts[sequence] + offset, shape.num_rows)
    tables = np.zeros((shape.num_sequences, shape.width), dtype=np.int32)
    for number, span in enumerate(spans):
        tables[number, : len(span.blocks)] = span.blocks
    slots = np.full(shape.num_rows, trash_slot, dtype=np.int64)
    blocks, places = np.divmod(positions[:num_rows], block_size)
    slots[:num_rows] = tables[sequence, blocks].astype(np.int64) * block_size + places
    token_ids = np.concatenate([np.zeros(0, dtype=np.int64), *(span.token_ids for span in spans)])
    lengths = starts + counts
    return {
        "token_ids": _filled(token_ids, shape.num_rows),
        "positions": positions,
        "slots": slots,
        "wanted": wanted,
        **_tiles(counts, row_starts, sequence, offset, shape),
        "tables": tables,
        "row_starts": row_starts.astype(np.int32),
        "lengths": lengths.astype(np.int32),
        "key_starts": _cumulative(lengths).astype(np.int32),
        "is_padding": np.arange(shape.num_rows) >= num_rows,
    }


def _tiles(
    counts: NDArray[np.int64],
    row_starts: NDArray[np.int64],
    sequence: NDArray[np.int64],
    offset: NDArray[np.int64],
    shape: StepShape,
) -> dict[str, NDArray[np.int64]]:
    """Cut every sequence's rows into tiles, at least one for each."""
    size = shape.tile_rows
    tile_counts = np.maximum(1, -(-counts // size))
    first_tiles = _cumulative(tile_counts)
    tile_sequence = np.repeat(np.arange(shape.num_sequences), tile_counts)
    ordinal = np.arange(len(tile_sequence)) - first_tiles[tile_sequence]
    return {
        "tile_sequence": tile_sequence,
        "tile_first": np.minimum(row_starts[tile_sequence] + ordinal * size, shape.num_rows - 1),
        "places": _filled((first_tiles[sequence] + offset // size) * size + offset % size, shape.num_rows),
    }


def _filled(values: Many[int] | NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return int64 (size,): the values, then zeros."""
    filled = np.zeros(size, dtype=np.int64)
    filled[: len(values)] = values
    return filled


def _cumulative(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64 (counts + 1,): what stands before each of them, then the sum of all."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
