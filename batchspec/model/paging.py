"""Attention over cache pages, for whoever runs a model's layers: new keys and values are stored, then rows attend.

No transformers here: models that are run without it call this, too. What is done on other devices than the CPU is in
``device``.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.device.attend import attend_on_device
from batchspec.model.device.rows import DeviceRows
from batchspec.model.kernel import attend_some, store
from batchspec.threads import over_rows, together

__all__ = ["NO_SINKS", "PackedRows", "Pages", "Rows", "attend_on_cpu", "attend_paged", "pages_on_cpu", "store_on_cpu"]

_WORTH_THREADS = 4_000_000  # products of scores, a quarter of a millisecond; below it threads cost more than they bring
_WORTH_STORING_TOGETHER = 200_000  # numbers, a tenth of a millisecond or two
NO_SINKS = np.empty(0, dtype=np.float32)

Floats = NDArray[np.float32]
Pages = tuple[NDArray[Any], NDArray[Any]]
"""Of a layer's keys and values: float32, or bfloat16 as uint16."""


@dataclass(frozen=True, kw_only=True)
class PackedRows:
    """Where the rows of a packed forward pass belong, for the CPU's kernel.

    Attributes:
        num_rows: rows that belong to a sequence; padding rows follow them.
        slots: int64 (num_rows,), ``block * block_size + offset`` of each row's page entry.
        tables: int32 (chunks, most blocks).
        row_chunk: int32 (all rows,), -1 for padding.
        row_position: int32 (all rows,).
    """

    num_rows: int
    slots: torch.Tensor
    tables: NDArray[np.int32]
    row_chunk: NDArray[np.int32]
    row_position: NDArray[np.int32]

    @cached_property
    def num_pairs(self) -> int:
        """About how many positions all rows together see."""
        return int(self.row_position.sum())

    def only(self, wanted: NDArray[np.int64]) -> "PackedRows":
        """Return the rows with these numbers, for attention; where keys and values belong stays."""
        return replace(self, row_chunk=self.row_chunk[wanted], row_position=self.row_position[wanted])


Rows = PackedRows | DeviceRows
"""Where rows belong: on the CPU, or on a device."""


def attend_paged(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    layer: tuple[torch.Tensor, torch.Tensor],
    rows: Rows,
    window: int,
    scale: float,
    softcap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Store the rows' keys and values in their pages and return what each row sees of its own sequence.

    Args:
        query: (rows, query heads, D), like key and value in any memory order and floating type.
        key: (rows, key heads, D), rotary already applied.
        value: (rows, key heads, Dv).
        layer: the layer's pages, from ``KVCache.layer``.
        rows: where the rows belong.
        window: positions that a row sees at the most, its own included; 0 for all.
        scale: factor on the scores.
        softcap: cap on the scores; 0 for none.
        sinks: (query heads,) of extra logits that take probability and carry no value.

    Returns:
        (rows, query heads, Dv), zero in padding rows: float32 from the CPU's kernel, the query's type elsewhere.
    """
    if isinstance(rows, DeviceRows):
        return attend_on_device(
            query, key, value, layer=layer, rows=rows, window=window, scale=scale, softcap=softcap, sinks=sinks
        )
    return _attend_on_cpu(query, key, value, *layer, rows, window, scale, softcap, sinks)


def _attend_on_cpu(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    rows: PackedRows,
    window: int,
    scale: float,
    softcap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Do ``attend_paged`` with the compiled kernel."""
    pages = pages_on_cpu(keys, values)
    store_on_cpu(_plain(key), _plain(value), pages=pages, rows=rows)
    extra = NO_SINKS if sinks is None else _plain(sinks.reshape(-1))
    out = np.empty((*query.shape[:2], value.shape[2]), dtype=np.float32)
    attend_on_cpu(
        _plain(query), pages=pages, rows=rows, window=window, scale=scale, softcap=softcap, sinks=extra, out=out
    )
    return torch.from_numpy(out)


def pages_on_cpu(keys: torch.Tensor, values: torch.Tensor) -> Pages:
    """Return a layer's pages as the kernel takes them."""
    first, second = (
        (pages.view(torch.uint16) if pages.dtype is torch.bfloat16 else pages).numpy() for pages in (keys, values)
    )
    return first, second


def store_on_cpu(
    key: Floats, value: Floats, *, pages: Pages, rows: PackedRows, first_key: int = 0, first_value: int = 0
) -> None:
    """Write the rows' keys and values into their pages, as numpy has them; else as ``attend_paged``.

    Both may have other heads before theirs and behind; ``first_key`` and ``first_value`` are their first ones.
    """
    slots = rows.slots.numpy()
    num_threads = (
        torch.get_num_threads() if pages[0].shape[1] * key.shape[2] * len(slots) >= _WORTH_STORING_TOGETHER else 1
    )
    over_rows(
        num_threads,
        len(slots),
        lambda part: store(key[part], value[part], first_key, first_value, slots[part], *pages),
    )


def attend_on_cpu(
    query: Floats,
    *,
    pages: Pages,
    rows: PackedRows,
    window: int,
    scale: float,
    softcap: float,
    sinks: Floats,
    out: NDArray[Any],
) -> None:
    """Fill ``out``, (rows, query heads, Dv), float32 or bfloat16 as uint16, with what each row sees; else as
    ``attend_paged``.

    Everything is as numpy has it; ``query`` may have more heads behind those of ``out``; ``sinks`` may be of length 0.
    """
    seen = (rows.tables, rows.row_chunk, rows.row_position)
    num_products = rows.num_pairs * out.shape[1] * query.shape[2]
    num_threads = torch.get_num_threads() if num_products >= _WORTH_THREADS else 1
    counter = np.zeros(1, dtype=np.int64)
    together(num_threads, lambda: attend_some(counter, query, *pages, *seen, window, scale, softcap, sinks, out))


def _plain(tensor: torch.Tensor) -> NDArray[np.float32]:
    """Return what the kernel reads: float32, the last dimension running fastest."""
    plain: NDArray[np.float32] = tensor.detach().float().contiguous().numpy()
    return plain
