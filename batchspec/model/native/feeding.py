"""The gated feed-forward part of a layer: down(activation(gate) * up), by kernels of ours or by products one by one.

Where weights are in strips, gates and what they gate are combined before they go to memory, as ``down`` takes them:
otherwise a prefill step writes and reads several times as much as its weights.
"""

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.linear import PackedLinear, pack_linear
from batchspec.model.native.kernels import gate
from batchspec.model.room import Room
from batchspec.model.strips import GatedStrips, StripLinear
from batchspec.threads import over_rows

__all__ = ["FeedForward", "StripFeed", "pack_feed"]

_WORTH_THREADS = 400_000  # numbers, a tenth of a millisecond or two


class FeedForward(Protocol):
    """A feed-forward part.

    Attributes:
        shapes: (out features, in features) of its matrix products.
        num_bytes: of the packed weights.
    """

    shapes: list[tuple[int, int]]
    num_bytes: int

    def place(self, num_rows: int) -> NDArray[Any]:
        """Return memory for rows as it takes them, see ``PackedLinear.place``."""

    def __call__(self, placed: NDArray[Any], *, room: Room) -> NDArray[np.float32]:
        """Return float32 (rows, hidden) of rows that were written where ``place`` said.

        Args:
            placed: what to multiply.
            room: for what is between; it is overwritten.
        """


class StripFeed:
    """Gates combined with what they gate strip by strip.

    Attributes:
        shapes: see ``FeedForward``, like ``place`` and ``num_bytes``.
        gates: with what they gate.
        down: what follows.
    """

    def __init__(self, gates: GatedStrips, down: StripLinear):
        self.gates, self.down = gates, down
        self.place = gates.place
        self.shapes = [(2 * gates.width, gates.in_features), (down.out_features, down.in_features)]
        self.num_bytes = gates.num_bytes + down.num_bytes

    def __call__(self, placed: NDArray[Any], *, room: Room) -> NDArray[np.float32]:
        """Do as ``FeedForward`` says; nothing is between."""
        del room
        gated = self.down.place(len(placed))
        self.gates(placed, gated)
        update: NDArray[np.float32] = self.down.multiply(gated).numpy()
        return update


class _Separate:
    def __init__(self, gate_up: PackedLinear, down: PackedLinear, *, is_silu: bool):
        self._gate_up, self._down, self._is_silu = gate_up, down, is_silu
        self.place = gate_up.place
        self.shapes = [(linear.out_features, linear.in_features) for linear in (gate_up, down)]
        self.num_bytes = gate_up.num_bytes + down.num_bytes

    def __call__(self, placed: NDArray[Any], *, room: Room) -> NDArray[np.float32]:
        given = self._gate_up.multiply(placed, room=room).numpy()
        gated = np.empty((len(placed), given.shape[1] // 2), dtype=np.float32)
        num_threads = torch.get_num_threads() if gated.size >= _WORTH_THREADS else 1
        over_rows(num_threads, len(gated), lambda part: gate(given[part], self._is_silu, gated[part]))
        update: NDArray[np.float32] = self._down(torch.from_numpy(gated)).numpy()
        return update


def pack_feed(
    gate_up: tuple[torch.Tensor, torch.Tensor | None],
    down: tuple[torch.Tensor, torch.Tensor | None],
    *,
    is_silu: bool,
    packing: str,
) -> FeedForward:
    """Return a feed-forward part ready to multiply.

    Args:
        gate_up: (2 * intermediate, hidden), gates first, and its bias or None; not kept.
        down: (hidden, intermediate), and its bias or None; not kept.
        is_silu: whether the activation is SiLU, else GELU in the form with tanh.
        packing: as in ``model.linear``.
    """
    packed = pack_linear(*down, packing=packing)
    if isinstance(packed, StripLinear) and gate_up[1] is None:
        return StripFeed(GatedStrips(gate_up[0], is_silu=is_silu, in_pairs=packing == "pairs"), packed)
    return _Separate(pack_linear(*gate_up, packing=packing), packed, is_silu=is_silu)
