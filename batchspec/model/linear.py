"""Matrix products with weights that are packed once, in the layout that is fastest for the few rows of a step.

Four packings, each with the row counts at which a row's bits do not depend on its neighbours:

- strips: our own kernel, see ``strips``; weights stay in bfloat16 or float32, as they are stored.
- pairs: the same with rows and weights in bfloat16, for processors with AVX-512 that multiply pairs of it.
- half: 16-bit floats, widened inside FBGEMM's kernels, which multiply and add in float32. Nothing is lost of weights
  that were stored in 16 bits: they are scaled by a power of two first, so that what lies 2**-38 below the largest
  weight and above is kept to the last bit.
- bfloat16: reordered by oneDNN; for processors that multiply tiles of it.
"""

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.room import Room
from batchspec.model.strips import StripLinear, can_pair

__all__ = [
    "PackedLinear",
    "RowCounts",
    "can_pack",
    "choose_packing",
    "module_row_counts",
    "pack_linear",
    "row_counts",
]

_LARGEST_EXPONENT = 15  # numbers below 2**15 are 16-bit floats
_SHORT = {torch.bfloat16, torch.float16}
_ROW_TILE = 16
_ROWS_AT_ONCE = 1 << 14
_BLOCK_ROWS = 120  # FBGEMM takes rows in blocks of so many, each split into groups anew


class RowCounts(Protocol):
    """Which numbers of rows may be computed at once."""

    def __call__(self, num_rows: int) -> int:
        """Return the smallest permitted number of rows that is not below ``num_rows``."""


class PackedLinear(Protocol):
    """A weight (out features, in features) that multiplies rows.

    Attributes:
        out_features: columns of the result.
        in_features: columns of the rows.
        num_bytes: of the packed weight.
    """

    out_features: int
    in_features: int
    num_bytes: int

    def __call__(self, rows: torch.Tensor, *, room: Room | None = None) -> torch.Tensor:
        """Return float32 (rows, out features) of float32 (rows, in features).

        Args:
            rows: what to multiply.
            room: where the result may be; it is then overwritten by the next one there.
        """

    def place(self, num_rows: int) -> NDArray[Any]:
        """Return memory for so many rows, (rows, at least in features), float32, or uint16 for bfloat16.

        Who computes rows writes them there, as they are multiplied, and leaves what is behind them as it is.
        """

    def multiply(self, placed: NDArray[Any], *, room: Room | None = None) -> torch.Tensor:
        """Return float32 (rows, out features) of rows that were written where ``place`` said; else as a call."""


class _Plain:
    """Takes rows as they are."""

    in_features: int

    def __call__(self, rows: torch.Tensor, *, room: Room | None = None) -> torch.Tensor:
        raise NotImplementedError

    def place(self, num_rows: int) -> NDArray[Any]:
        return np.empty((num_rows, self.in_features), dtype=np.float32)

    def multiply(self, placed: NDArray[Any], *, room: Room | None = None) -> torch.Tensor:
        return self(torch.from_numpy(placed), room=room)


class _Half(_Plain):
    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.out_features, self.in_features = weight.shape
        self.num_bytes = 2 * weight.numel()
        largest = max(abs(float(edge)) for edge in weight.aminmax())
        exponent = _LARGEST_EXPONENT - math.frexp(largest)[1]
        self._scale = 2.0**-exponent
        self._bias = bias
        scaled = torch.empty(weight.shape)
        for first in range(0, len(weight), _ROWS_AT_ONCE):  # a stored weight is not to be in memory as a whole
            rows = slice(first, first + _ROWS_AT_ONCE)
            torch.mul(weight[rows], 2.0**exponent, out=scaled[rows])
        self._packed = torch.ops.quantized.linear_prepack_fp16(scaled)

    def __call__(self, rows: torch.Tensor, *, room: Room | None = None) -> torch.Tensor:
        del room
        out: torch.Tensor = torch.ops.quantized.linear_dynamic_fp16(rows * self._scale, self._packed)
        return out if self._bias is None else out.add_(self._bias)


class _Tiled(_Plain):
    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.out_features, self.in_features = weight.shape
        self.num_bytes = torch.bfloat16.itemsize * weight.numel()
        self._bias = bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(torch.bfloat16), _ROW_TILE)

    def __call__(self, rows: torch.Tensor, *, room: Room | None = None) -> torch.Tensor:
        del room
        product = torch.ops.mkldnn._linear_pointwise(rows.to(torch.bfloat16), self._packed, None, "none", [], "")
        out: torch.Tensor = product.float()
        return out if self._bias is None else out.add_(self._bias)


def pack_linear(weight: torch.Tensor, bias: torch.Tensor | None = None, *, packing: str) -> PackedLinear:
    """Return a weight ready to multiply.

    Args:
        weight: (out features, in features), any floating dtype; not kept.
        bias: (out features,), added in float32.
        packing: strips, pairs, half or bfloat16.
    """
    added = None if bias is None else bias.float()
    if packing in ("strips", "pairs"):
        return StripLinear(weight, added, in_pairs=packing == "pairs")
    return _Half(weight, added) if packing == "half" else _Tiled(weight, added)


def choose_packing(stored: set[torch.dtype], *, dtype: torch.dtype) -> str | None:
    """Return the packing that is fastest here for products in ``dtype`` with weights stored in these types.

    By the kind of the processor, not by measurement: results must be the same the next time.

    Args:
        stored: dtypes of the weights.
        dtype: float32 or bfloat16.

    Returns:
        None where there is none.
    """
    if dtype is torch.bfloat16:
        has_tiles = hasattr(torch.cpu, "get_capabilities") and torch.cpu.get_capabilities().get("amx_bf16", False)
        order = ["bfloat16", "pairs"] if has_tiles else ["pairs", "bfloat16"]
        return next(filter(can_pack, order), None)
    return "half" if torch.float16 in stored and stored <= _SHORT and can_pack("half") else "strips"


def row_counts(packing: str) -> RowCounts:
    """Return which numbers of rows a packing computes alike."""
    return {"strips": _any_number, "pairs": _any_number, "half": _half_rows}.get(packing, _whole_tiles)


def module_row_counts(widths: Iterable[int]) -> RowCounts:
    """Return which numbers of rows torch's own modules, in float32, compute alike.

    Element-wise operations take up to 32 numbers at once, rows behind each other, and what is left over one by one, to
    other bits: with odd widths only twice a tile of rows leaves nothing over.

    Args:
        widths: of the rows that they compute.
    """
    if all(width % 2 == 0 for width in widths):
        return _whole_tiles
    return lambda num_rows: 2 * _whole_tiles(-(-num_rows // 2))


def _any_number(num_rows: int) -> int:
    return max(1, num_rows)


def _whole_tiles(num_rows: int) -> int:
    return max(1, -(-num_rows // _ROW_TILE)) * _ROW_TILE


def _half_rows(num_rows: int) -> int:
    """Return the next number of rows whose split into the kernels' row groups gives every row the usual bits."""
    good = _good_half_rows()
    whole, rest = divmod(num_rows, _BLOCK_ROWS)
    return whole * _BLOCK_ROWS + next(count for count in good if count >= rest)


@cache
def can_pack(packing: str) -> bool:
    """Return whether this build of torch has the kernels, and this processor runs them."""
    if packing == "pairs":
        return can_pair()
    try:
        pack_linear(torch.ones(16, 16), packing=packing)(torch.ones(16, 16))
    except RuntimeError:
        return False
    return True


@cache
def _good_half_rows() -> tuple[int, ...]:
    """Return the row counts, none included, up to a whole block, that give every row the same bits.

    The kernels take rows in groups, and groups of one and two rows add in another order. Which counts are split into
    such groups depends on the processor, so all are tried, on a small matrix.
    """
    generator = torch.Generator().manual_seed(0)
    linear = _Half(torch.randn(16, 96, generator=generator), None)
    row = torch.randn(1, 96, generator=generator)
    rows = row.expand(_BLOCK_ROWS, -1).contiguous()
    usual = linear(rows[:6])[5]
    good = [count for count in range(1, _BLOCK_ROWS + 1) if bool((linear(rows[:count]) == usual).all())]
    return 0, *good
