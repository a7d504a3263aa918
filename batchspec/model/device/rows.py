"""Where the rows of a packed forward pass belong, on a device."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch

from batchspec.model.cache import KVCache
from batchspec.model.device.shape import StepShape
from batchspec.model.device.varlen_form import VarlenForm

__all__ = ["DeviceRows"]


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceRows:
    """Where the rows belong; all tensors are on the device, and were moved there together.

    Attributes:
        positions: int64 (rows,), of each row in its sequence.
        slots: int64 (rows,), ``block * block size + offset`` of each row's page entry.
        is_padding: bool (rows,).
        tables: int32 (sequences, width), each sequence's blocks.
        row_starts: int32 (sequences + 1,), first row of each sequence.
        lengths: int32 (sequences,), tokens so far, this step's included; 0 for padding sequences.
        key_starts: int32 (sequences + 1,), sum of the lengths before each.
        tile_sequence: int64 (tiles,), whose rows a tile has.
        tile_first: int64 (tiles,), first row of a tile.
        places: int64 (rows,), ``tile * tile rows + offset`` of each row; 0 for padding.
        most_rows: rows that a sequence has at the most.
        tile_rows: rows of a tile.
        block_size: tokens in a block.
        null_slot: a page entry that is always zero.
        varlen: how torch's kernel takes pages of this size and dtype here; None where it does not.
    """

    positions: torch.Tensor
    slots: torch.Tensor
    is_padding: torch.Tensor
    tables: torch.Tensor
    row_starts: torch.Tensor
    lengths: torch.Tensor
    key_starts: torch.Tensor
    tile_sequence: torch.Tensor
    tile_first: torch.Tensor
    places: torch.Tensor
    most_rows: int
    tile_rows: int
    block_size: int
    null_slot: int
    varlen: VarlenForm | None
    _seen: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, tensors: Mapping[str, torch.Tensor], *, shape: StepShape, cache: KVCache, varlen: VarlenForm | None
    ) -> "DeviceRows":
        """Return the rows that ``lay_out`` laid out, moved to the device."""
        names = ("positions", "slots", "is_padding", "tables", "row_starts", "lengths", "key_starts")
        return cls(
            **{name: tensors[name] for name in (*names, "tile_sequence", "tile_first", "places")},
            most_rows=shape.most_rows,
            tile_rows=shape.tile_rows,
            block_size=cache.block_size,
            null_slot=cache.null_slot,
            varlen=varlen,
        )

    @property
    def num_keys(self) -> int:
        """Positions that the widest table has room for."""
        return self.tables.shape[1] * self.block_size

    @property
    def is_gathered(self) -> bool:
        """Whether keys were gathered for any layer so far."""
        return bool(self._seen)

    @cached_property
    def query_rows(self) -> torch.Tensor:
        """int64 (tiles, tile rows): the rows of each tile; behind its last row come rows of others."""
        offsets = torch.arange(self.tile_rows, device=self.slots.device)
        return (self.tile_first[:, None] + offsets).clamp_(max=len(self.slots) - 1)

    @cached_property
    def key_slots(self) -> torch.Tensor:
        """int64 (tiles, keys): the page entry of each position; the null slot where the sequence has none."""
        column = torch.arange(self.num_keys, device=self.slots.device)
        blocks = self.tables[self.tile_sequence][:, column // self.block_size].long()
        is_absent = column >= self.lengths[self.tile_sequence][:, None]
        return (blocks * self.block_size + column % self.block_size).masked_fill_(is_absent, self.null_slot)

    def seen(self, *, window: int, group: int) -> torch.Tensor:
        """Return bool (tiles, group * tile rows, keys): the positions that each row sees; made once for all layers.

        Args:
            window: positions that a row sees at the most, its own included; 0 for all.
            group: query heads that share a key head; every row is there once for each.
        """
        if (window, group) not in self._seen:
            row = self.positions[self.query_rows][..., None]
            column = torch.arange(self.num_keys, device=self.slots.device)
            seen = (column <= row) & (column > row - window) if window else column <= row
            self._seen[window, group] = seen.repeat(1, group, 1)
        return self._seen[window, group]
