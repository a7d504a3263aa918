"""Single entries of a block of logits: what penalties, biases and bans touch, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike

from batchspec.sampling.moving import beside

__all__ = ["Entries"]


@dataclass(frozen=True, kw_only=True)
class Entries:
    """Entries of a block (rows, vocabulary), all on its device.

    Attributes:
        rows: int64 (entries,), rows within the block.
        tokens: int64 (entries,), vocabulary ids.
        amounts: float64 (entries,), what to do there.
    """

    rows: torch.Tensor
    tokens: torch.Tensor
    amounts: torch.Tensor

    @classmethod
    def collect(cls, parts: Iterable[tuple[int, ArrayLike, ArrayLike]], *, block: torch.Tensor) -> "Entries":
        """Put together a row, its token ids and their amounts, part by part; ids that the block lacks are left out.

        Args:
            parts: (row, token ids, amount for each or for all).
            block: float64 (rows, vocabulary).
        """
        rows, tokens = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        amounts = [np.zeros(0)]
        for row, token_ids, amount in parts:
            ids = np.asarray(token_ids, dtype=np.int64)
            rows.append(np.full(len(ids), row))
            tokens.append(ids)
            amounts.append(np.broadcast_to(np.asarray(amount, dtype=np.float64), ids.shape))
        token = np.concatenate(tokens)
        known = (token >= 0) & (token < block.shape[-1])
        return cls(
            rows=beside(block, np.concatenate(rows)[known]),
            tokens=beside(block, token[known]),
            amounts=beside(block, np.concatenate(amounts)[known]),
        )

    def read(self, block: torch.Tensor) -> torch.Tensor:
        """Return float64 (entries,): what the block holds there."""
        return block[self.rows, self.tokens]

    def write(self, block: torch.Tensor, values: torch.Tensor) -> None:
        """Put values there; an entry that is there twice must get the same value twice."""
        block[self.rows, self.tokens] = values
