"""One packed forward pass for a step's plan."""

import numpy as np
import torch

from batchspec.model.cache import KVCache
from batchspec.model.device.steps import DeviceSteps
from batchspec.model.linear import RowCounts
from batchspec.model.network import Network
from batchspec.model.paging import PackedRows
from batchspec.model.wanted import wanted_rows
from batchspec.step import StepPlan

__all__ = ["ModelRunner", "pack"]


class ModelRunner:
    """Runs any supported causal language model over packed chunks, keys and values in pages.

    Rows are padded to numbers at which a row's bits do not depend on its neighbours. That costs little, since weights,
    not rows, are the price.

    Attributes:
        on_device: runs the steps where the cache is not laid out for the CPU's kernel; else None.

    Args:
        network: the model's layers.
        cache: the pages, as many blocks as the scheduler's pool.
        device: where inputs go.
    """

    def __init__(self, *, network: Network, cache: KVCache, device: torch.device):
        self.network = network
        self.cache = cache
        self.device = device
        self.on_device = None if cache.in_strips else DeviceSteps(network=network, cache=cache)

    @torch.inference_mode()
    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary): 1 + draft length rows for each sampled chunk, then all prompt rows.

        The next pass may overwrite them.
        """
        if self.on_device is not None:
            return self.on_device.forward(plan)
        row_counts = self.network.row_counts
        token_ids, positions, rows = pack(plan, block_size=self.cache.block_size, row_counts=row_counts)
        wanted = wanted_rows(plan)
        padded = wanted + [0] * (row_counts(max(1, len(wanted))) - len(wanted))
        logits = self.network.forward(token_ids, positions, rows=rows, cache=self.cache, wanted=torch.tensor(padded))
        return logits[: len(wanted)]


def pack(plan: StepPlan, *, block_size: int, row_counts: RowCounts) -> tuple[torch.Tensor, torch.Tensor, PackedRows]:
    """Lay a plan's chunks one behind another and pad them to a permitted number of rows.

    Returns:
        Token ids int64 (rows,), positions int64 (rows,), and where the rows belong.
    """
    chunks = plan.chunks
    num_rows = plan.num_tokens
    size = row_counts(num_rows)
    token_ids = np.zeros(size, dtype=np.int64)
    positions = np.zeros(size, dtype=np.int64)
    slots = np.empty(num_rows, dtype=np.int64)
    row_chunk = np.full(size, -1, dtype=np.int32)
    tables = np.zeros((len(chunks), max(len(chunk.sequence.blocks) for chunk in chunks)), dtype=np.int32)
    first = 0
    for index, chunk in enumerate(chunks):
        last, end = first + len(chunk.token_ids), chunk.start + len(chunk.token_ids)
        blocks = chunk.sequence.blocks
        tables[index, : len(blocks)] = blocks
        token_ids[first:last] = chunk.token_ids
        positions[first:last] = np.arange(chunk.start, end)
        slots[first:last] = tables[index, positions[first:last] // block_size].astype(np.int64) * block_size
        slots[first:last] += positions[first:last] % block_size
        row_chunk[first:last] = index
        first = last
    rows = PackedRows(
        num_rows=num_rows,
        slots=torch.from_numpy(slots),
        tables=tables,
        row_chunk=row_chunk,
        row_position=positions.astype(np.int32),
    )
    return torch.from_numpy(token_ids), torch.from_numpy(positions), rows
