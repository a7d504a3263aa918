"""A weight in strips."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.room import Room
from batchspec.model.strips.kernel import STRIP, multiply_some
from batchspec.model.strips.packing import pack_pairs, pack_strips, space_rows
from batchspec.model.strips.processor import HAS_BFLOAT16
from batchspec.threads import over_rows, together

__all__ = ["StripLinear", "can_pair"]

_WORTH_THREADS = 4_000_000  # products, a twentieth of a millisecond; below it a second thread comes too late
_WORTH_COPYING_TOGETHER = 400_000  # numbers, a tenth of a millisecond or two
_FEW = 4  # rows up to which the weights' way from memory takes the time, not the products
_SET = 1024  # bytes: of rows that begin a multiple of it apart, no more than some fit into the nearest cache
_LINE = 64


def can_pair() -> bool:
    """Return whether the processor multiplies pairs of bfloat16."""
    return HAS_BFLOAT16


class StripLinear:
    """A weight in strips of outputs, multiplied by our own kernel.

    Attributes:
        out_features: columns of the result.
        in_features: columns of the rows.
        num_bytes: of the packed weight.
        strips: as ``kernel.multiply_some`` takes them.
        fills_strips: whether the last strip is as full as the others.
        bias: float32 (out features,), or None.

    Args:
        weight: (out features, in features), any floating dtype; not kept.
        bias: added in float32.
        in_pairs: rows and weights are rounded to bfloat16 and multiplied in pairs.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, in_pairs: bool = False):
        self.out_features, self.in_features = weight.shape
        self.bias = bias
        self._in_pairs = in_pairs
        kept = self.kept(weight)
        numbers = (kept.view(torch.uint16) if kept.dtype is torch.bfloat16 else kept).numpy()
        num_strips = -(-self.out_features // STRIP)
        self.fills_strips = self.out_features % STRIP == 0
        if in_pairs:
            self.strips = np.zeros((num_strips, -(-self.in_features // 2), STRIP, 2), dtype=np.uint16)
            pack_pairs(numbers, self.strips)
        else:
            self.strips = np.empty((num_strips, self.in_features, STRIP), dtype=numbers.dtype)
            pack_strips(numbers, self.strips)
        self.num_bytes = self.strips.nbytes

    def __call__(self, rows: torch.Tensor, *, room: Room | None = None) -> torch.Tensor:
        """Return float32 (rows, out features) of float32 (rows, in features).

        Args:
            rows: what to multiply.
            room: where the result may be; it is then overwritten by the next one there.
        """
        return self.multiply(self.given(rows), room=room)

    def multiply(self, placed: NDArray[Any], *, room: Room | None = None) -> torch.Tensor:
        """Return float32 (rows, out features) of rows that were written where ``place`` said, or are from ``given``."""
        out = (room or Room()).take(len(placed), len(self.strips) * STRIP)
        counter, result = np.zeros(1, dtype=np.int64), out.numpy()
        together(self.num_threads(len(placed)), lambda: multiply_some(counter, placed, self.strips, result))
        if not self.fills_strips:
            out = out[:, : self.out_features].contiguous()
        return out if self.bias is None else out.add_(self.bias)

    def kept(self, weight: torch.Tensor) -> torch.Tensor:
        """Return a weight, or a part of it, as it is multiplied: bfloat16 if in pairs, else bfloat16 or float32."""
        if self._in_pairs:
            return weight.bfloat16()
        return weight if weight.dtype in (torch.bfloat16, torch.float32) else weight.float()

    def seen(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the numbers that are multiplied: float32 (rows, in features), rounded if weights are in pairs."""
        if not self._in_pairs:
            return rows
        rounded: NDArray[np.float32] = torch.from_numpy(rows).bfloat16().float().numpy()
        return rounded

    def given(self, rows: torch.Tensor) -> NDArray[Any]:
        """Return rows as the kernel takes them, with a space behind each where they would be in each other's way."""
        kept = rows.contiguous().numpy()
        spaced = self.place(len(rows))
        if spaced.dtype == np.float32 and spaced.shape == kept.shape:
            return kept
        num_threads = torch.get_num_threads() if spaced.size >= _WORTH_COPYING_TOGETHER else 1
        over_rows(num_threads, len(kept), lambda part: space_rows(kept[part], spaced[part]))
        return spaced

    def place(self, num_rows: int) -> NDArray[Any]:
        """Return memory for so many rows as the kernel takes them, (rows, at least in features), for others to fill.

        It is float32, or uint16 for bfloat16; behind the inputs there may be one that counts, which is 0.
        """
        dtype = np.dtype(np.uint16 if self._in_pairs else np.float32)
        width = self.in_features + (self.in_features % 2 if self._in_pairs else 0)
        apart = width + (_LINE // dtype.itemsize if num_rows > 1 and width * dtype.itemsize % _SET == 0 else 0)
        placed = np.empty((num_rows, apart), dtype=dtype)
        placed[:, self.in_features : width] = 0
        return placed

    def num_threads(self, num_rows: int) -> int:
        """Return how many threads are worth their trouble for so many rows."""
        is_large = self.strips.size * max(_FEW, num_rows) >= _WORTH_THREADS
        return torch.get_num_threads() if is_large else 1
