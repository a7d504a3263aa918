"""Attention over pages by torch's variable-length kernel, which reads them where they are."""

from collections.abc import Callable
from typing import Any, cast

import torch

from batchspec.model.device.rows import DeviceRows

__all__ = ["KERNEL_DTYPES", "attend_varlen", "can_attend_varlen", "varlen_kernel"]

KERNEL_DTYPES = (torch.float16, torch.bfloat16)
_MOST_DIM = 256


def varlen_kernel() -> Callable[..., torch.Tensor]:
    """Return torch's function; ImportError where torch has none."""
    from torch.nn.attention.varlen import varlen_attn

    kernel: Any = varlen_attn
    return cast(Callable[..., torch.Tensor], kernel)


def can_attend_varlen(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    *,
    rows: DeviceRows,
    softcap: float,
    sinks: torch.Tensor | None,
) -> bool:
    """Return whether the kernel knows how to do it; arguments as for ``attend_padded``."""
    dim, dtype = query.shape[2], query.dtype
    is_plain = not softcap and sinks is None
    has_dim = values.shape[3] == dim and dim % 8 == 0 and dim <= _MOST_DIM
    return rows.varlen is not None and is_plain and has_dim and dtype in KERNEL_DTYPES and dtype is keys.dtype


def attend_varlen(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, *, rows: DeviceRows, window: int, scale: float
) -> torch.Tensor:
    """Return (rows, query heads, D), what each row sees of its own sequence; padding rows: anything.

    One split: with more, the kernel would divide the keys by the longest neighbour, and the sums depend on that.

    Args:
        query: (rows, query heads, D), float16 or bfloat16, like the pages.
        keys: (blocks, block size, key heads, D), this step's already stored.
        values: (blocks, block size, key heads, D).
        rows: where the rows belong; its ``varlen`` is not None.
        window: positions that a row sees at the most, its own included; 0 for all.
        scale: factor on the scores.
    """
    is_single = rows.most_rows == 1  # a sequence's only row sees all of it, which the kernel does faster unmasked
    seen = (window - 1, 0) if window else (-1, -1 if is_single else 0)
    return varlen_kernel()(
        query,
        keys,
        values,
        rows.row_starts,
        rows.key_starts if rows.varlen is not None and rows.varlen.has_key_starts else None,
        rows.most_rows,
        rows.num_keys,
        scale=scale,
        window_size=seen,
        enable_gqa=True,
        seqused_k=rows.lengths,
        block_table=rows.tables,
        num_splits=1,
    )
