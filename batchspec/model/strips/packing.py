"""Weights laid out in strips, and rows for them."""

from typing import Any

from batchspec.compiled import compiled
from batchspec.model.attending.stored import put

__all__ = ["pack_pairs", "pack_strips", "space_rows"]


@compiled(nogil=True)
def pack_strips(weight: Any, strips: Any) -> None:
    """Write a weight (outputs, inputs) into strips (ceil(outputs / STRIP), inputs, STRIP); what is left over is 0."""
    outputs, inputs = weight.shape
    for strip in range(len(strips)):
        first = strip * strips.shape[2]
        for lane in range(strips.shape[2]):
            if first + lane < outputs:
                for i in range(inputs):
                    strips[strip, i, lane] = weight[first + lane, i]
            else:
                strips[strip, :, lane] = 0


@compiled(nogil=True)
def pack_pairs(weight: Any, strips: Any) -> None:
    """Write a weight (outputs, inputs) into strips (ceil(outputs / STRIP), ceil(inputs / 2), STRIP, 2) of zeros."""
    outputs, inputs = weight.shape
    for output in range(outputs):
        strip, lane = output // strips.shape[2], output % strips.shape[2]
        for i in range(inputs):
            strips[strip, i // 2, lane, i % 2] = weight[output, i]


@compiled(nogil=True)
def space_rows(rows: Any, out: Any) -> None:
    """Copy float32 (rows, inputs) into (rows, at least as many), bfloat16 as uint16 or float32; the rest becomes 0."""
    width, apart = rows.shape[1], out.shape[1]
    target = out.reshape(out.size)
    for row in range(len(rows)):
        line, at = rows[row], row * apart
        for i in range(width):
            put(target, at + i, line[i])
        for i in range(width, apart):
            put(target, at + i, 0.0)
