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

__all__ = ["attend"]


@compiled()
def _dot(query: Any, key: Any, products: Any) -> Any:
    """Return the dot product, summed by folding halves, so that it runs in vector lanes; ``products`` is scratch."""
    half = len(query) // 2
    kept = len(query) - half
    if kept > half:
        products[half] = query[half] * key[half]
    rest_of_query, rest_of_key = query[kept:], key[kept:]
    for d in range(half):
        products[d] = query[d] * key[d] + rest_of_query[d] * rest_of_key[d]
    while kept > 8:
        half = kept // 2
        kept -= half
        rest = products[kept:]
        for d in range(half):
            products[d] += rest[d]
    total = products[0]
    for d in range(1, kept):
        total += products[d]
    return total


@compiled()
def _score(
    query: Any, keys: Any, table: Any, kv_head: int, begin: int, scale: float, softcap: float, scores: Any
) -> None:
    """Write the scores (group, positions) of one row's heads against its pages from position ``begin`` on."""
    group, block_size = scores.shape[0], keys.shape[1]
    products = np.empty(query.shape[1], dtype=np.float32)
    for i in range(scores.shape[1]):
        position = begin + i
        key = keys[table[position // block_size], position % block_size, kv_head]
        for g in range(group):
            score = _dot(query[kv_head * group + g], key, products) * np.float32(scale)
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
    num_kv_heads = keys.shape[2]
    group = query.shape[1] // num_kv_heads
    for task in prange(query.shape[0] * num_kv_heads):
        row, kv_head = task // num_kv_heads, task % num_kv_heads
        chunk = row_chunk[row]
        if chunk < 0:
            out[row, kv_head * group : (kv_head + 1) * group] = 0.0
            continue
        end = row_position[row] + 1
        begin = max(0, end - window) if window > 0 else 0
        scores = np.empty((group, end - begin), dtype=np.float32)
        _score(query[row], keys, tables[chunk], kv_head, begin, scale, softcap, scores)
        _normalise(scores, sinks, kv_head)
        _mix(scores, values, tables[chunk], kv_head, begin, out[row])
