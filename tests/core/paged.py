"""A model that sees nothing but what stands in the pages."""

import torch

from batchspec.step import Chunk, StepPlan

__all__ = ["PagedModel"]


class PagedModel:
    """Writes tokens into pages as a model writes keys and values, and reads every context back from them.

    The logits after a context are the table's row of its last token plus something that depends on all tokens before
    it and on where they stand: a page that holds anything else than it should changes the output.

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
                self.pages[self._slot(chunk, position)] = token
        rows = []
        for chunk in plan.sampled:
            end = chunk.start + len(chunk.token_ids)
            rows += [self._logits(chunk, position) for position in range(end - chunk.num_rows, end)]
        for chunk in plan.scored:
            rows += [
                self._logits(chunk, position) for position in range(chunk.start, chunk.start + chunk.num_prompt_rows)
            ]
        return torch.stack(rows) if rows else self.table[:0]

    def _slot(self, chunk: Chunk, position: int) -> tuple[int, int]:
        return chunk.sequence.blocks[position // self.block_size], position % self.block_size

    def _logits(self, chunk: Chunk, position: int) -> torch.Tensor:
        context = [self.pages[self._slot(chunk, i)] for i in range(position + 1)]
        state = sum((i + 1) * token for i, token in enumerate(context)) % 97
        turned: torch.Tensor = (torch.arange(self.table.shape[-1]) * (state + 1) % 13) / 13
        return self.table[context[-1]] + turned
