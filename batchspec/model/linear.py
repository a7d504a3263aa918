"""Matrix products with weights that are packed once, in the layout that is fastest for the few rows of a step.

Three packings, each with the row counts at which a row's bits do not depend on its neighbours:

- half: 16-bit floats, widened inside FBGEMM's kernels, which multiply and add in float32. Half the memory traffic, and
  nothing is lost of weights that were stored in 16 bits: they are scaled by a power of two first, so that what lies
  2**-38 below the largest weight and above is kept to the last bit.
- full: float32, reordered by oneDNN.
- bfloat16: reordered by oneDNN; for processors that multiply in it.
"""

import math
from functools import cache
from typing import Protocol

import torch

__all__ = ["PackedLinear", "RowCounts", "can_pack", "pack_linear", "row_counts"]

_LARGEST_EXPONENT = 15  # numbers below 2**15 are 16-bit floats
_ROW_TILE = 16
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

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return float32 (rows, out features) of float32 (rows, in features)."""


class _Half:
    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.out_features, self.in_features = weight.shape
        self.num_bytes = 2 * weight.numel()
        largest = max(abs(float(edge)) for edge in weight.aminmax())
        exponent = _LARGEST_EXPONENT - math.frexp(largest)[1]
        self._scale = 2.0**-exponent
        self._bias = bias
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight.mul_(2.0**exponent))

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = torch.ops.quantized.linear_dynamic_fp16(rows * self._scale, self._packed)
        return out if self._bias is None else out.add_(self._bias)


class _OneDNN:
    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, *, dtype: torch.dtype):
        self.out_features, self.in_features = weight.shape
        self.num_bytes = dtype.itemsize * weight.numel()
        self._dtype = dtype
        self._bias = bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype), _ROW_TILE)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        product = torch.ops.mkldnn._linear_pointwise(rows.to(self._dtype), self._packed, None, "none", [], "")
        out: torch.Tensor = product.float()
        return out if self._bias is None else out.add_(self._bias)


def pack_linear(weight: torch.Tensor, bias: torch.Tensor | None = None, *, packing: str) -> PackedLinear:
    """Return a weight ready to multiply.

    Args:
        weight: float32 (out features, in features); not kept, and written over meanwhile.
        bias: (out features,), added in float32.
        packing: half, full or bfloat16.
    """
    added = None if bias is None else bias.float()
    if packing == "half":
        return _Half(weight, added)
    return _OneDNN(weight, added, dtype=torch.float32 if packing == "full" else torch.bfloat16)


def row_counts(packing: str) -> RowCounts:
    """Return which numbers of rows a packing computes alike."""
    return _half_rows if packing == "half" else _whole_tiles


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
