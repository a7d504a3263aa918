"""Attention over cache pages on a device: by the kernel that reads pages if it can, else by gathering."""

import torch

from batchspec.model.device.padded import attend_padded
from batchspec.model.device.rows import DeviceRows
from batchspec.model.device.varlen import attend_varlen, can_attend_varlen

__all__ = ["attend_on_device"]


def attend_on_device(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    layer: tuple[torch.Tensor, torch.Tensor],
    rows: DeviceRows,
    window: int,
    scale: float,
    softcap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Do ``paging.attend_paged`` on any device; nothing here waits for it.

    Args:
        query: (rows, query heads, D).
        key: (rows, key heads, D).
        value: (rows, key heads, Dv).
        layer: pages (blocks, block size, key heads, D or Dv).
        rows: where the rows belong.
        window: positions that a row sees at the most, its own included; 0 for all.
        scale: factor on the scores.
        softcap: cap on the scores; 0 for none.
        sinks: (query heads,) of extra logits that take probability and carry no value.

    Returns:
        (rows, query heads, Dv) in the query's type, zero in padding rows.
    """
    keys, values = layer
    for pages, fresh in ((keys, key), (values, value)):
        pages.flatten(0, 1)[rows.slots] = fresh.to(pages.dtype)
    if can_attend_varlen(query, keys, values, rows=rows, softcap=softcap, sinks=sinks):
        out = attend_varlen(query, keys, values, rows=rows, window=window, scale=scale)
    else:
        out = attend_padded(query, keys, values, rows=rows, window=window, scale=scale, softcap=softcap, sinks=sinks)
    return out.masked_fill_(rows.is_padding[:, None, None], 0)
