"""The paged store of keys and values, one pair of tensors for each attention call of a forward pass."""

from dataclasses import dataclass

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

    Args:
        num_blocks: blocks in the pool.
        block_size: tokens in a block.
        dtype: of the store.
        device: of the store.
    """

    def __init__(self, *, num_blocks: int, block_size: int, dtype: torch.dtype, device: torch.device):
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.dtype = dtype
        self.device = device
        self.layouts: list[KVLayout] = []
        self._layers: list[tuple[torch.Tensor, torch.Tensor]] = []

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one token takes over all layers met so far."""
        return sum(layout.num_elements for layout in self.layouts) * self.dtype.itemsize

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
        """Return pages in the order that attention on the device wants.

        On the CPU (blocks, key heads, block size * dim), the order inside being the kernel's own; elsewhere
        (blocks, block size, key heads, dim).
        """
        on_cpu = self.device.type == "cpu"
        shape = (num_heads, self.block_size * dim) if on_cpu else (self.block_size, num_heads, dim)
        return torch.empty((self.num_blocks, *shape), dtype=self.dtype, device=self.device)
