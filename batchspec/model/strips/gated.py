"""Gates and what they gate, multiplied strip by strip and combined before they go to memory."""

from typing import Any, NamedTuple

import numpy as np

from batchspec.compiled import compiled, inner
from batchspec.model.activation import gated
from batchspec.model.attending.lanes import claim, load, store
from batchspec.model.attending.stored import put
from batchspec.model.attending.vectors import LANES
from batchspec.model.strips.heights import HIGHEST
from batchspec.model.strips.keeping import keeps
from batchspec.model.strips.kernel import STRIP, rows_at_once, take_strip
from batchspec.model.strips.sixteen import store_rows

__all__ = ["gate_some"]

_TASK = 2  # pairs of strips that a thread takes at once


class _Pair(NamedTuple):
    """Where a strip of gates and one of what they gate are kept side by side: a flat array, and where both begin."""

    out: Any
    row: int
    strip: int


@keeps(_Pair)
def _keep_pair(sums: Any, target: Any, row: int, strip: int) -> None:
    at = (row - target.row) * 2 * STRIP + (strip - target.strip) * STRIP
    store_rows(sums, target.out, at, 2 * STRIP)


@compiled(nogil=True)
def gate_some(counter: Any, rows: Any, strips: Any, width: int, is_silu: bool, out: Any) -> None:
    """Write activation(rows . gates) * (rows . ups) into ``out``; threads share the work as in ``multiply_some``.

    Args:
        counter: int64 (1,), 0 at first.
        rows: as for ``multiply_some``.
        strips: the same, a strip of gates and one of what they gate in turn.
        width: gates.
        is_silu: which activation, see ``model.activation``.
        out: (rows, at least width), float32, or bfloat16 as uint16; what is behind the width stays.
    """
    num_rows, apart = rows.shape
    num_pairs, num_steps = strips.shape[0] // 2, strips.shape[1]
    given, packed, result = rows.reshape(rows.size), strips.reshape(strips.size), out.reshape(out.size)
    height = rows_at_once(num_rows, num_steps)
    num_groups = (num_pairs + _TASK - 1) // _TASK
    room = np.empty((height + HIGHEST) * 2 * STRIP, dtype=np.float32)
    task = claim(counter)
    while task < (num_rows + height - 1) // height * num_groups:
        first, begin = task // num_groups * height, task % num_groups * _TASK
        end = min(first + height, num_rows)
        for pair in range(begin, min(begin + _TASK, num_pairs)):
            for strip in range(2 * pair, 2 * pair + 2):
                take_strip(first, end, given, apart, packed, strip, num_steps, _Pair(room, first, 2 * pair))
            at = first * out.shape[1] + pair * STRIP
            _combine(room, end - first, is_silu, result, at, out.shape[1], min(STRIP, width - pair * STRIP))
        task = claim(counter)


@inner
def _combine(room: Any, num_rows: int, is_silu: bool, out: Any, at: int, apart: int, width: int) -> None:
    """Write what becomes of rows of gates, each with what it gates behind it."""
    for row in range(num_rows):
        begin = row * 2 * STRIP
        for i in range(begin, begin + STRIP, LANES):
            store(room, i, gated(load(room, i), load(room, i + STRIP), is_silu))
        for i in range(width):
            put(out, at + row * apart + i, room[begin + i])
