"""One packed forward pass for a step's plan."""

import numpy as np
import torch

from batchspec.model.cache import KVCache
from batchspec.model.linear import RowCounts
from batchspec.model.network import Network
from batchspec.model.paging import PackedRows
from batchspec.step import StepPlan

__all__ = ["ModelRunner", "pack"]


class ModelRunner:
    """Runs any supported causal language model over packed chunks, keys and values in pages.

    Rows are padded to numbers at which a row's bits do not depend on its neighbours. That costs little, since weights,
    not rows, are the price.

    Args:
        network: the model's layers.
        cache: the pages, as many blocks as the scheduler's pool.
        device: where inputs go.
    """

    def __init__(self, *, network: Network, cache: KVCache, device: torch.device):
        self.network = network
        self.cache = cache
        self.device = device

    @torch.inference_mode()
    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary): 1 + draft length rows for each sampled chunk, then all prompt rows.

        The next pass may overwrite them.
        """
        row_counts = self.network.row_counts
        token_ids, positions, rows = pack(
            plan, block_size=self.cache.block_size, row_counts=row_counts, device=self.device
        )
        wanted = _wanted_rows(plan)
        padded = wanted + [0] * (row_counts(max(1, len(wanted))) - len(wanted))
        wanted_rows = torch.tensor(padded, device=self.device)
        logits = self.network.forward(token_ids, positions, rows=rows, cache=self.cache, wanted=wanted_rows)
        return logits[: len(wanted)]


def _wanted_rows(plan: StepPlan) -> list[int]:
    """Return the packed row numbers whose logits are needed, those before prompt tokens last."""
    wanted: list[int] = []
    prompt_rows: list[int] = []
    end = 0
    for chunk in plan.chunks:
        prompt_rows += range(end, end + chunk.num_prompt_rows)
        end += len(chunk.token_ids)
        wanted += range(end - chunk.num_rows, end)
    return wanted + prompt_rows


def pack(
    plan: StepPlan, *, block_size: int, row_counts: RowCounts, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, PackedRows]:
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
    bounds = []
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
        bounds.append((first, last, end))
        first = last
    rows = PackedRows(
        num_rows=num_rows,
        slots=torch.from_numpy(slots).to(device),
        tables=tables,
        row_chunk=row_chunk,
        row_position=positions.astype(np.int32),
        bounds=bounds,
    )
    return torch.from_numpy(token_ids).to(device), torch.from_numpy(positions).to(device), rows
