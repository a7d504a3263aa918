"""Attention over cache pages on the CPU, one query row at a time.

Each row's result depends on that row and on its own pages alone, in a fixed order of operations: not on its
neighbours, on the size of the chunk it came in or on the number of threads. That is what makes the text independent
of batching and of drafts, to the last bit in float32.
"""

import math
from typing import Any

import numpy as np
from numba import prange

from batchspec.compiled import compiled

__all__ = ["attend", "attend_alone"]


@compiled()
def _dot(query: Any, key: Any) -> Any:
    """Return the dot product, summed in eight lanes that are folded at the end: a fixed order that fills a vector."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.float32(0.0)
    num_whole = len(query) - len(query) % 8
    for d in range(0, num_whole, 8):
        a0 += query[d] * key[d]
        a1 += query[d + 1] * key[d + 1]
        a2 += query[d + 2] * key[d + 2]
        a3 += query[d + 3] * key[d + 3]
        a4 += query[d + 4] * key[d + 4]
        a5 += query[d + 5] * key[d + 5]
        a6 += query[d + 6] * key[d + 6]
        a7 += query[d + 7] * key[d + 7]
    for d in range(num_whole, len(query)):
        a0 += query[d] * key[d]
    return ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))


@compiled()
def _score(
    query: Any, keys: Any, table: Any, kv_head: int, begin: int, scale: float, softcap: float, scores: Any
) -> None:
    """Write the scores (group, positions) of one row's heads against its pages from position ``begin`` on."""
    group, block_size = scores.shape[0], keys.shape[1]
    for i in range(scores.shape[1]):
        position = begin + i
        key = keys[table[position // block_size], position % block_size, kv_head]
        for g in range(group):
            score = _dot(query[kv_head * group + g], key) * np.float32(scale)
            if softcap > 0.0:
                score = np.float32(softcap) * np.float32(math.tanh(score / np.float32(softcap)))
            scores[g, i] = score


@compiled()
def _normalise(scores: Any, sinks: Any, kv_head: int) -> None:
    """Turn scores (group, positions) into probabilities in place; sinks take a share without a value."""
    group = scores.shape[0]
    for g in range(group):
        sink = sinks[kv_head * group + g] if len(sinks) else np.float32(-np.inf)
        highest = sink
        for i in range(scores.shape[1]):
            highest = max(highest, scores[g, i])
        total = np.float32(math.exp(sink - highest))
        for i in range(scores.shape[1]):
            weight = np.float32(math.exp(scores[g, i] - highest))
            scores[g, i] = weight
            total += weight
        inverse = np.float32(1.0) / total
        for i in range(scores.shape[1]):
            scores[g, i] *= inverse


@compiled()
def _mix(weights: Any, values: Any, table: Any, kv_head: int, begin: int, out: Any) -> None:
    """Write the weighted sums of the pages' values from position ``begin`` on into one row's heads."""
    group, block_size = weights.shape[0], values.shape[1]
    for g in range(group):
        out[kv_head * group + g] = 0.0
    for i in range(weights.shape[1]):
        position = begin + i
        value = values[table[position // block_size], position % block_size, kv_head]
        for g in range(group):
            weight = weights[g, i]
            target = out[kv_head * group + g]
            for d in range(len(target)):
                target[d] += weight * value[d]


@compiled()
def _attend_row(
    task: int,
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
    """Do the part of ``attend`` that belongs to one row and one key head, ``task = row * key heads + key head``."""
    num_kv_heads = keys.shape[2]
    group = query.shape[1] // num_kv_heads
    row, kv_head = task // num_kv_heads, task % num_kv_heads
    chunk = row_chunk[row]
    if chunk < 0:
        out[row, kv_head * group : (kv_head + 1) * group] = 0.0
        return
    end = row_position[row] + 1
    begin = max(0, end - window) if window > 0 else 0
    scores = np.empty((group, end - begin), dtype=np.float32)
    _score(query[row], keys, tables[chunk], kv_head, begin, scale, softcap, scores)
    _normalise(scores, sinks, kv_head)
    _mix(scores, values, tables[chunk], kv_head, begin, out[row])


@compiled(parallel=True)
def attend(
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
    """Write softmax(scale * query . keys) . values for every row into ``out``; causal, grouped heads not repeated.

    Args:
        query: float32 (rows, query heads, D).
        keys: float32 (blocks, block size, key heads, D), the new rows' keys already written.
        values: float32 (blocks, block size, key heads, Dv).
        tables: int32 (chunks, most blocks), each chunk's block numbers.
        row_chunk: int32 (rows,), the chunk of each row; -1 for padding rows, whose output is zero.
        row_position: int32 (rows,), the position of each row in its sequence; it sees ``[0, position]``.
        window: positions that a row sees at the most, its own included; 0 for all.
        scale: factor on the scores.
        softcap: scores become ``softcap * tanh(score / softcap)``; 0 for off.
        sinks: float32 (query heads,) of extra logits that take probability and carry no value; length 0 for none.
        out: float32 (rows, query heads, Dv).
    """
    for task in prange(query.shape[0] * keys.shape[2]):
        _attend_row(task, query, keys, values, tables, row_chunk, row_position, window, scale, softcap, sinks, out)


@compiled()
def attend_alone(
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
    """Do the same as ``attend`` on the calling thread: for small steps, in which threads would only wait."""
    for task in range(query.shape[0] * keys.shape[2]):
        _attend_row(task, query, keys, values, tables, row_chunk, row_position, window, scale, softcap, sinks, out)
