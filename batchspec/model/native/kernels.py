"""The element-wise work between matrix products, fused and compiled.

Every row is computed by itself in a fixed order, so that its bits do not depend on the neighbours.
"""

import math
from typing import Any

import numpy as np

from batchspec.compiled import compiled

__all__ = ["add_and_norm", "gate", "rotate"]

_LANES = 16


@compiled()
def _inverse_rms(row: Any, eps: float) -> Any:
    """Return 1 / sqrt(mean square + eps), the squares summed in lanes that are folded at the end."""
    lanes = np.zeros(_LANES, dtype=np.float32)
    num_whole = len(row) - len(row) % _LANES
    for start in range(0, num_whole, _LANES):
        for lane in range(_LANES):
            lanes[lane] += row[start + lane] * row[start + lane]
    for i in range(num_whole, len(row)):
        lanes[0] += row[i] * row[i]
    total = np.float32(0.0)
    for lane in range(_LANES):
        total += lanes[lane]
    return np.float32(1.0) / np.float32(math.sqrt(total / np.float32(len(row)) + np.float32(eps)))


@compiled()
def add_and_norm(stream: Any, update: Any, update_weight: Any, weight: Any, eps: float, out: Any) -> None:
    """Add an update to the residual stream in place and write the stream's root mean square norm into ``out``.

    Source of the norm: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019).

    Args:
        stream: float32 (rows, width).
        update: float32 (rows, width), or no rows for none.
        update_weight: float32 (width,), by which the update is normalised first; of length 0 where it is not.
        weight: float32 (width,).
        eps: added to mean squares.
        out: float32 (rows, width).
    """
    for row in range(stream.shape[0]):
        line, target = stream[row], out[row]
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
            target[i] = line[i] * scale * weight[i]


@compiled()
def rotate(heads: Any, cosine: Any, sine: Any, num_query_heads: int, weights: Any, eps: float) -> None:
    """Turn queries and keys by their positions, in place, after a norm of each head where there is one.

    Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021), with the halves of a head
    as the pairs.

    Args:
        heads: float32 (rows, query heads + key heads, D).
        cosine: float32 (rows, D / 2).
        sine: float32 (rows, D / 2).
        num_query_heads: of the heads; the others are keys.
        weights: float32 (2, D), of the norms of queries and of keys; (0, D) for no norm.
        eps: added to mean squares.
    """
    half = heads.shape[2] // 2
    for row in range(heads.shape[0]):
        c, s = cosine[row], sine[row]
        for number in range(heads.shape[1]):
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


@compiled()
def gate(gate_up: Any, is_silu: bool, out: Any) -> None:
    """Write activation(gate) * up into ``out``.

    Both activations are x * sigmoid(z): SiLU with z = x, GELU in its tanh form with
    z = 2 * sqrt(2 / pi) * (x + 0.044715 * x ** 3), since (1 + tanh(u)) / 2 = sigmoid(2 * u).
    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).

    Args:
        gate_up: float32 (rows, 2 * width), gate first.
        is_silu: which activation.
        out: float32 (rows, width).
    """
    width = out.shape[1]
    factor, cubic = np.float32(2.0 * math.sqrt(2.0 / math.pi)), np.float32(0.044715)
    for row in range(len(out)):
        x, up, target = gate_up[row, :width], gate_up[row, width:], out[row]
        for i in range(width):
            z = x[i] if is_silu else factor * (x[i] + cubic * x[i] * x[i] * x[i])
            target[i] = x[i] / (np.float32(1.0) + np.float32(math.exp(-z))) * up[i]
