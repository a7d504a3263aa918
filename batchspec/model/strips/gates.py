"""Gates with what they gate, in strips."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.strips.gated import gate_some
from batchspec.model.strips.kernel import STRIP
from batchspec.model.strips.linear import StripLinear
from batchspec.threads import together

__all__ = ["GatedStrips"]


class GatedStrips:
    """Weights of gates and of what they gate, a strip of these behind each strip of those.

    Attributes:
        width: gates.
        in_features: columns of the rows.
        num_bytes: of the packed weights.
        strips: as ``gated.gate_some`` takes them.

    Args:
        weight: (2 * width, in features), gates first, any floating dtype; not kept.
        is_silu: which activation, see ``model.activation``.
        in_pairs: as for ``StripLinear``.
    """

    def __init__(self, weight: torch.Tensor, *, is_silu: bool, in_pairs: bool = False):
        self.width, self.in_features = len(weight) // 2, weight.shape[1]
        halves = weight.view(2, self.width, self.in_features)
        halves = torch.nn.functional.pad(halves, (0, 0, 0, -self.width % STRIP))
        in_turn = halves.view(2, -1, STRIP, self.in_features).transpose(0, 1).reshape(-1, self.in_features)
        self._packed = StripLinear(in_turn, in_pairs=in_pairs)
        self._is_silu = is_silu
        self.num_bytes = self._packed.num_bytes
        self.place = self._packed.place
        self.strips = self._packed.strips

    def __call__(self, placed: NDArray[Any], out: NDArray[Any]) -> None:
        """Write what is gated, (rows, width), float32 or bfloat16 as uint16, into ``out``, which may be broader."""
        counter = np.zeros(1, dtype=np.int64)
        together(
            self._packed.num_threads(len(placed)),
            lambda: gate_some(counter, placed, self.strips, self.width, self._is_silu, out),
        )
