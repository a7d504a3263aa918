"""A model that sees nothing but what stands in the pages."""

import torch

from batchspec.step import Chunk, StepPlan

__all__ = ["PagedModel"]


class PagedModel:
    """Writes into pages as a model writes keys and values, and reads what came before from them.

    A page's entry is a hash of its token and the entry before it. The logits after a token are the table's row of that
    token plus something that depends on the entry: a page that holds anything else than it should changes the output.

    Args:
        table: float (vocabulary, vocabulary).
        block_size: tokens in a block.
    """

    def __init__(self, table: torch.Tensor, *, block_size: int):
        self.table = table
        self.block_size = block_size
        self.pages: dict[tuple[int, int], int] = {}
        self.num_tokens = 0

    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary) of the plan's sampled chunks, then those of its prompt rows."""
        self.num_tokens += plan.num_tokens
        for chunk in plan.chunks:
            for position, token in enumerate(chunk.token_ids.tolist(), start=chunk.start):
                before = self.pages[self._slot(chunk, position - 1)] if position else 0
                self.pages[self._slot(chunk, position)] = (31 * before + token + 1) % 10007
        rows = []
        for chunk in plan.sampled:
            num_tokens = len(chunk.token_ids)
            rows += [self._logits(chunk, i) for i in range(num_tokens - chunk.num_rows, num_tokens)]
        for chunk in plan.scored:
            rows += [self._logits(chunk, i) for i in range(chunk.num_prompt_rows)]
        return torch.stack(rows) if rows else self.table[:0]

    def _slot(self, chunk: Chunk, position: int) -> tuple[int, int]:
        return chunk.sequence.blocks[position // self.block_size], position % self.block_size

    def _logits(self, chunk: Chunk, i: int) -> torch.Tensor:
        entry = self.pages[self._slot(chunk, chunk.start + i)]
        turned: torch.Tensor = (torch.arange(self.table.shape[-1]) * (entry + 1) % 13) / 13
        return self.table[int(chunk.token_ids[i])] + turned
