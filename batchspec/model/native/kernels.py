"""The element-wise work between matrix products, fused and compiled.

Every row is computed by itself in a fixed order, so that its bits do not depend on the neighbours.
"""

import math
from typing import Any

import numpy as np

from batchspec.compiled import compiled, inner
from batchspec.model.activation import gated
from batchspec.model.attending.exponential import tanh
from batchspec.model.attending.lanes import load, multiply, spread, store
from batchspec.model.attending.stored import put
from batchspec.model.attending.vectors import LANES

__all__ = ["add_and_norm", "cap", "gate", "rotate"]

_SUMS = 16


@inner
def _inverse_rms(row: Any, eps: float) -> Any:
    """Return 1 / sqrt(mean square + eps), the squares summed in lanes that are folded at the end."""
    sums = np.zeros(_SUMS, dtype=np.float32)
    num_whole = len(row) - len(row) % _SUMS
    for start in range(0, num_whole, _SUMS):
        for lane in range(_SUMS):
            sums[lane] += row[start + lane] * row[start + lane]
    for i in range(num_whole, len(row)):
        sums[0] += row[i] * row[i]
    total = np.float32(0.0)
    for lane in range(_SUMS):
        total += sums[lane]
    return np.float32(1.0) / np.float32(math.sqrt(total / np.float32(len(row)) + np.float32(eps)))


@compiled(nogil=True)
def add_and_norm(stream: Any, update: Any, update_weight: Any, weight: Any, eps: float, out: Any) -> None:
    """Add an update to the residual stream in place and write the stream's root mean square norm into ``out``.

    Source of the norm: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019).

    Args:
        stream: float32 (rows, width).
        update: float32 (rows, width), or no rows for none.
        update_weight: float32 (width,), by which the update is normalised first; of length 0 where it is not.
        weight: float32 (width,).
        eps: added to mean squares.
        out: (rows, at least width), float32, or bfloat16 as uint16; what is behind the norm stays.
    """
    target, apart = out.reshape(out.size), out.shape[1]
    for row in range(stream.shape[0]):
        line, at = stream[row], row * apart
        if len(update):
            change = update[row]
            if len(update_weight):
                scale = _inverse_rms(change, eps)
                for i in range(len(line)):
                    line[i] += change[i] * scale * update_weight[i]
            else:
                for i in range(len(line)):
                    line[i] += change[i]
        scale = _inverse_rms(line, eps)
        for i in range(len(line)):
            put(target, at + i, line[i] * scale * weight[i])


@compiled(nogil=True)
def rotate(heads: Any, cosine: Any, sine: Any, num_query_heads: int, num_turned: int, weights: Any, eps: float) -> None:
    """Turn queries and keys by their positions, in place, after a norm of each head where there is one.

    Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021), with the halves of a head
    as the pairs.

    Args:
        heads: float32 (rows, query heads + key heads and more, D).
        cosine: float32 (rows, D / 2).
        sine: float32 (rows, D / 2).
        num_query_heads: of the heads.
        num_turned: they and the keys; what follows these is left as it is.
        weights: float32 (2, D), of the norms of queries and of keys; (0, D) for no norm.
        eps: added to mean squares.
    """
    half = heads.shape[2] // 2
    for row in range(heads.shape[0]):
        c, s = cosine[row], sine[row]
        for number in range(num_turned):
            head = heads[row, number]
            if len(weights):
                weight = weights[0] if number < num_query_heads else weights[1]
                scale = _inverse_rms(head, eps)
                for i in range(len(head)):
                    head[i] *= scale * weight[i]
            low, high = head[:half], head[half:]
            for i in range(half):
                x, y = low[i], high[i]
                low[i] = x * c[i] - y * s[i]
                high[i] = y * c[i] + x * s[i]


@compiled(nogil=True)
def gate(gate_up: Any, is_silu: bool, out: Any) -> None:
    """Write activation(gate) * up into ``out``; see ``model.activation``.

    Args:
        gate_up: float32 (rows, 2 * width), gate first.
        is_silu: which activation.
        out: float32 (rows, width).
    """
    width = out.shape[1]
    whole = width - width % LANES
    given, result = gate_up.reshape(gate_up.size), out.reshape(out.size)
    rest = np.zeros(2 * LANES, dtype=np.float32)
    for row in range(len(out)):
        first = 2 * row * width
        for i in range(0, whole, LANES):
            store(result, row * width + i, gated(load(given, first + i), load(given, first + width + i), is_silu))
        if whole < width:
            for i in range(width - whole):
                rest[i], rest[LANES + i] = given[first + whole + i], given[first + width + whole + i]
            store(rest, 0, gated(load(rest, 0), load(rest, LANES), is_silu))
            for i in range(width - whole):
                result[row * width + whole + i] = rest[i]


@compiled(nogil=True)
def cap(logits: Any, softcap: float) -> None:
    """Turn logits x, float32 (any number,), into ``softcap * tanh(x / softcap)`` in place."""
    whole = len(logits) - len(logits) % LANES
    factor, inverse = spread(softcap), spread(1.0 / softcap)
    for i in range(0, whole, LANES):
        store(logits, i, multiply(factor, tanh(multiply(load(logits, i), inverse))))
    rest = np.zeros(LANES, dtype=np.float32)
    rest[: len(logits) - whole] = logits[whole:]
    store(rest, 0, multiply(factor, tanh(multiply(load(rest, 0), inverse))))
    logits[whole:] = rest[: len(logits) - whole]
