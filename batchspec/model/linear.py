"""Matrix products with weights that are packed once, in the layout that is fastest for the few rows of a step.

Four packings, each with the row counts at which a row's bits do not depend on its neighbours:

- strips: our own kernel, see ``matmul``; weights stay in bfloat16 or float32, as they are stored.
- half: 16-bit floats, widened inside FBGEMM's kernels, which multiply and add in float32, with wider vectors than ours
  where the processor has them. Nothing is lost of weights that were stored in 16 bits: they are scaled by a power of
  two first, so that what lies 2**-38 below the largest weight and above is kept to the last bit.
- full: float32, reordered by oneDNN.
- bfloat16: reordered by oneDNN; for processors that multiply in it.
"""

import math
from functools import cache
from typing import Protocol

import numpy as np
import torch

from batchspec.model.matmul import STRIP, multiply_some, pack_strips
from batchspec.threads import together

__all__ = [
    "PackedLinear",
    "Room",
    "RowCounts",
    "StripLinear",
    "can_pack",
    "choose_packing",
    "pack_linear",
    "row_counts",
]

_LARGEST_EXPONENT = 15  # numbers below 2**15 are 16-bit floats
_ROW_TILE = 16
_WORTH_THREADS = 4_000_000  # products, a twentieth of a millisecond; below it a second thread comes too late
_ROWS_AT_ONCE = 1 << 14
_FEW = 4  # rows up to which the weights' way from memory takes the time, not the products
_BLOCK_ROWS = 120  # FBGEMM takes rows in blocks of so many, each split into groups anew


class RowCounts(Protocol):
    """Which numbers of rows may be computed at once."""

    def __call__(self, num_rows: int) -> int:
        """Return the smallest permitted number of rows that is not below ``num_rows``."""


class Room:
    """Memory for a result that is taken again and again.

    Memory of more than 32 MiB goes back to the system when it is freed, and getting it anew, page by page, takes about
    as long as a tenth of the product that fills it.
    """

    def __init__(self) -> None:
        self._numbers = torch.empty(0)

    def take(self, num_rows: int, width: int) -> torch.Tensor:
        """Return float32 (rows, width), holding anything."""
        if self._numbers.numel() < num_rows * width:
            self._numbers = torch.empty(num_rows * width)
        return self._numbers[: num_rows * width].view(num_rows, width)


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


class StripLinear:
    """A weight in strips of outputs, multiplied by our own kernel.

    Attributes:
        strips: as ``matmul.multiply_some`` takes them.
        bias: float32 (out features,), or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.out_features, self.in_features = weight.shape
        kept = weight if weight.dtype in (torch.bfloat16, torch.float32) else weight.float()
        numbers = (kept.view(torch.uint16) if kept.dtype is torch.bfloat16 else kept).numpy()
        self.bias = bias
        self.strips = np.empty((-(-self.out_features // STRIP), self.in_features, STRIP), dtype=numbers.dtype)
        self._is_padded = self.out_features % STRIP > 0
        self.num_bytes = self.strips.nbytes
        pack_strips(numbers, self.strips)

    def __call__(self, rows: torch.Tensor, *, room: Room | None = None) -> torch.Tensor:
        """Multiply, see ``PackedLinear``."""
        out = (room or Room()).take(len(rows), len(self.strips) * STRIP)
        counter, given, result = np.zeros(1, dtype=np.int64), rows.contiguous().numpy(), out.numpy()
        is_large = self.strips.size * max(_FEW, len(rows)) >= _WORTH_THREADS
        num_threads = torch.get_num_threads() if is_large else 1
        together(num_threads, lambda: multiply_some(counter, given, self.strips, result))
        if self._is_padded:
            out = out[:, : self.out_features].contiguous()
        return out if self.bias is None else out.add_(self.bias)


class _Half:
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


class _OneDNN:
    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, *, dtype: torch.dtype):
        self.out_features, self.in_features = weight.shape
        self.num_bytes = dtype.itemsize * weight.numel()
        self._dtype = dtype
        self._bias = bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype), _ROW_TILE)

    def __call__(self, rows: torch.Tensor, *, room: Room | None = None) -> torch.Tensor:
        del room
        product = torch.ops.mkldnn._linear_pointwise(rows.to(self._dtype), self._packed, None, "none", [], "")
        out: torch.Tensor = product.float()
        return out if self._bias is None else out.add_(self._bias)


def pack_linear(weight: torch.Tensor, bias: torch.Tensor | None = None, *, packing: str) -> PackedLinear:
    """Return a weight ready to multiply.

    Args:
        weight: (out features, in features), any floating dtype; not kept.
        bias: (out features,), added in float32.
        packing: strips, half, full or bfloat16.
    """
    added = None if bias is None else bias.float()
    if packing == "strips":
        return StripLinear(weight, added)
    if packing == "half":
        return _Half(weight, added)
    return _OneDNN(weight, added, dtype=torch.float32 if packing == "full" else torch.bfloat16)


def choose_packing(stored: set[torch.dtype]) -> str:
    """Return the packing that is fastest here for float32 products with weights stored in these types.

    By the kind of the processor, not by measurement: results must be the same the next time.
    """
    has_wide_vectors = hasattr(torch.cpu, "get_capabilities") and torch.cpu.get_capabilities().get("avx512_f", False)
    is_short = not stored - {torch.bfloat16, torch.float16}
    if is_short and can_pack("half") and (has_wide_vectors or torch.float16 in stored):
        return "half"
    return "full" if has_wide_vectors and can_pack("full") else "strips"


def row_counts(packing: str) -> RowCounts:
    """Return which numbers of rows a packing computes alike."""
    return {"strips": _any_number, "half": _half_rows}.get(packing, _whole_tiles)


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
