"""The paged store of keys and values, one pair of tensors for each attention call of a forward pass."""

from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["KVCache", "KVLayout"]


@dataclass(frozen=True, kw_only=True)
class KVLayout:
    """What one attention call stores for each token."""

    num_kv_heads: int
    key_dim: int
    value_dim: int

    @property
    def num_elements(self) -> int:
        """Numbers stored for one token."""
        return self.num_kv_heads * (self.key_dim + self.value_dim)


class KVCache:
    """Keys and values by block, allocated when a layer is first met; memory is touched only as blocks are used.

    On the CPU the store is float32 whatever the model's dtype, because the kernel computes in float32.

    Where pages are not in strips there are two blocks more than the pool has: the null block, which is always zero and
    stands for what is not there, and the trash block, into which padding rows are written and which nobody reads.

    Args:
        num_blocks: blocks in the pool.
        block_size: tokens in a block.
        dtype: of the store.
        device: of the store.
        in_strips: whether pages are laid out for the CPU's kernel; None for whether the device is the CPU.
    """

    def __init__(
        self,
        *,
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype,
        device: torch.device,
        in_strips: bool | None = None,
    ):
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.dtype = dtype
        self.device = device
        self.in_strips = device.type == "cpu" if in_strips is None else in_strips
        self.layouts: list[KVLayout] = []
        self._layers: list[tuple[torch.Tensor, torch.Tensor]] = []

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one token takes over all layers met so far."""
        return sum(layout.num_elements for layout in self.layouts) * self.dtype.itemsize

    @property
    def null_slot(self) -> int:
        """Where an entry stands, ``block * block_size + offset``, that is always zero."""
        return self.num_blocks * self.block_size

    @property
    def trash_slot(self) -> int:
        """Where padding rows are stored."""
        return (self.num_blocks + 1) * self.block_size

    def layer(self, ordinal: int, layout: KVLayout) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pages (keys, values) of the attention call with that ordinal."""
        if ordinal == len(self._layers):
            keys, values = (self._pages(layout.num_kv_heads, dim) for dim in (layout.key_dim, layout.value_dim))
            self.layouts.append(layout)
            self._layers.append((keys, values))
        if layout != self.layouts[ordinal]:
            raise ValueError(f"attention call {ordinal} changed its layout from {self.layouts[ordinal]} to {layout}")
        return self._layers[ordinal]

    def _pages(self, num_heads: int, dim: int) -> torch.Tensor:
        """Return pages in the order that attention wants.

        In strips (blocks, key heads, block size * dim), the order inside being the kernel's own; else
        (blocks, block size, key heads, dim).
        """
        options: dict[str, Any] = {"dtype": self.dtype, "device": self.device}
        if self.in_strips:
            return torch.empty((self.num_blocks, num_heads, self.block_size * dim), **options)
        pages = torch.empty((self.num_blocks + 2, self.block_size, num_heads, dim), **options)
        pages[self.num_blocks].zero_()
        return pages
