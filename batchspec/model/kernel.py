"""Attention over cache pages on the CPU, one query row at a time.

Each row's result depends on that row and on its own pages alone, in a fixed order of operations: not on its
neighbours, on the size of the chunk it came in or on the number of threads. That is what makes the text independent
of batching and of drafts, to the last bit in float32.
"""

import math
from typing import Any

import numpy as np
from numba import njit, prange

__all__ = ["attend"]


@njit(parallel=True, fastmath={"reassoc", "contract", "nsz"}, cache=True)  # type: ignore[untyped-decorator]
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
    num_rows, num_heads, dim = query.shape
    block_size, num_kv_heads, value_dim = keys.shape[1], keys.shape[2], values.shape[3]
    group = num_heads // num_kv_heads
    for task in prange(num_rows * num_kv_heads):
        row = task // num_kv_heads
        kv_head = task % num_kv_heads
        first_head = kv_head * group
        chunk = row_chunk[row]
        for head in range(first_head, first_head + group):
            for d in range(value_dim):
                out[row, head, d] = 0.0
        if chunk < 0:
            continue
        end = row_position[row] + 1
        begin = max(0, end - window) if window > 0 else 0
        scores = np.empty((group, end - begin), dtype=np.float32)
        for position in range(begin, end):
            key = keys[tables[chunk, position // block_size], position % block_size, kv_head]
            for g in range(group):
                q = query[row, first_head + g]
                score = np.float32(0.0)
                for d in range(dim):
                    score += q[d] * key[d]
                score *= np.float32(scale)
                if softcap > 0.0:
                    score = np.float32(softcap) * math.tanh(score / np.float32(softcap))
                scores[g, position - begin] = score
        for g in range(group):
            highest = sinks[first_head + g] if len(sinks) else scores[g, 0]
            for i in range(end - begin):
                highest = max(highest, scores[g, i])
            total = math.exp(sinks[first_head + g] - highest) if len(sinks) else np.float32(0.0)
            for i in range(end - begin):
                weight = math.exp(scores[g, i] - highest)
                scores[g, i] = weight
                total += weight
            inverse = np.float32(1.0) / np.float32(total)
            for i in range(end - begin):
                scores[g, i] *= inverse
        for position in range(begin, end):
            value = values[tables[chunk, position // block_size], position % block_size, kv_head]
            for g in range(group):
                weight = scores[g, position - begin]
                target = out[row, first_head + g]
                for d in range(value_dim):
                    target[d] += weight * value[d]
