"""Cosines and sines of the angles by which rotary embedding turns queries and keys."""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.native.shape import Rotary

__all__ = ["Turn", "Turns"]

Turn = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Cosine and sine, float32 (rows, D / 2)."""

_BLOCK = 1024  # positions computed at once; always the same ones together, so that the bits are always the same


class Turns:
    """A table over positions that grows as longer sequences are met.

    Args:
        rotary: which angles.
        head_dim: width of a head.
    """

    def __init__(self, rotary: Rotary, *, head_dim: int):
        self._frequencies = _frequencies(rotary, head_dim)
        self._cosine = torch.empty(0, head_dim // 2)
        self._sine = torch.empty(0, head_dim // 2)

    def __call__(self, positions: torch.Tensor) -> Turn:
        """Return cosine and sine, float32 (rows, D / 2), at int64 (rows,) positions."""
        while len(self._cosine) <= int(positions.max()):
            block = torch.arange(len(self._cosine), len(self._cosine) + _BLOCK, dtype=torch.float32)
            angles = block[:, None] * self._frequencies
            self._cosine = torch.cat([self._cosine, angles.cos()])
            self._sine = torch.cat([self._sine, angles.sin()])
        return self._cosine[positions].numpy(), self._sine[positions].numpy()


def _frequencies(rotary: Rotary, head_dim: int) -> torch.Tensor:
    """Return float32 (D / 2,), radians per position.

    Source of the scaling in Llama 3.1: transformers' documentation page "Utilities for Rotary Embedding".
    """
    frequencies = 1.0 / (rotary.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim))
    if rotary.llama3 is None:
        return frequencies / rotary.factor
    low, high, context = rotary.llama3
    lengths = 2 * math.pi / frequencies
    share = ((context / lengths - low) / (high - low)).clamp(0.0, 1.0)  # 1 where waves are short: left as they are
    return share * frequencies + (1.0 - share) * frequencies / rotary.factor
