"""Weights as small integers, with what is needed to say how far off their products can be."""

from typing import Any

import numpy as np

from batchspec.compiled import compiled

__all__ = ["pack_integers"]

_LARGEST = 127.0  # of int8, on both sides of zero
_UP = 1.00001  # what numbers are enlarged by before they are rounded to float32
_LEAST = 1e-14  # of a slack: more than what is lost where numbers below the normal ones count as zero
_TOO_LARGE = 1e15


@compiled(nogil=True)
def pack_integers(weight: Any, scales: Any, packed: Any, totals: Any, measures: Any, error_share: float) -> bool:
    """Write weights as integers times a unit for each output; return whether all of them are of a usual size.

    Args:
        weight: float32 (outputs, inputs).
        scales: float64 (inputs,), by which weights are multiplied, and rows to be divided.
        packed: int8 (strips, inputs' / n, STRIP, n) of zeros, inputs' being at least as many, n inputs together.
        totals: int32 (strips, STRIP), to hold the sum of each output's integers.
        measures: float32 (strips, 3, STRIP), to hold each output's unit, its slack (how long the difference between
            weights and integers is, plus the share below) and its size (how long the integers are, in their unit).
        error_share: what sums in float32 may be wrong by, as a share of the product of both lengths.
    """
    together = packed.shape[3]
    for output in range(len(weight)):
        row, strip, lane = weight[output], output // packed.shape[2], output % packed.shape[2]
        largest = 0.0
        for i in range(len(row)):
            if not abs(row[i]) <= _TOO_LARGE:
                return False
            largest = max(largest, abs(row[i] * scales[i]))
        unit = np.float64(np.float32(largest / _LARGEST)) if largest > 0 else 1.0
        if unit == 0.0:
            return False
        missing, size, total = 0.0, 0.0, 0
        for i in range(len(row)):
            scaled = row[i] * scales[i]
            number = min(_LARGEST, max(-_LARGEST, np.rint(scaled / unit)))
            packed[strip, i // together, lane, i % together] = number
            total += int(number)
            missing += (scaled - number * unit) ** 2
            size += (number * unit) ** 2
        missing, size = np.sqrt(missing), np.sqrt(size)
        totals[strip, lane] = total
        measures[strip, 0, lane] = unit
        measures[strip, 1, lane] = max(_LEAST, _UP * (missing + error_share * (size + missing)))
        measures[strip, 2, lane] = _UP * size
    return True
