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
def pack_integers(weight: Any, packed: Any, measures: Any, error_share: float) -> bool:
    """Write weights as integers times a unit for each output; return whether all of them are of a usual size.

    Args:
        weight: float32 (outputs, inputs).
        packed: int8 (strips, inputs' / 2, STRIP, 2) of zeros, inputs' being at least as many, pairs of inputs together.
        measures: float32 (strips, 3, STRIP), to hold each output's unit, its slack (how long the difference between
            weights and integers is, plus the share below) and its size (how long the integers are, in their unit).
        error_share: what sums in float32 may be wrong by, as a share of the product of both lengths.
    """
    for output in range(len(weight)):
        row, strip, lane = weight[output], output // packed.shape[2], output % packed.shape[2]
        largest = np.float32(0.0)
        for i in range(len(row)):
            if not abs(row[i]) <= _TOO_LARGE:
                return False
            largest = max(largest, abs(row[i]))
        unit = np.float64(np.float32(largest / _LARGEST)) if largest > 0 else 1.0
        if unit == 0.0:
            return False
        missing, size = 0.0, 0.0
        for i in range(len(row)):
            number = min(_LARGEST, max(-_LARGEST, np.rint(row[i] / unit)))
            packed[strip, i // 2, lane, i % 2] = number
            missing += (row[i] - number * unit) ** 2
            size += (number * unit) ** 2
        missing, size = np.sqrt(missing), np.sqrt(size)
        measures[strip, 0, lane] = unit
        measures[strip, 1, lane] = max(_LEAST, _UP * (missing + error_share * (size + missing)))
        measures[strip, 2, lane] = _UP * size
    return True
