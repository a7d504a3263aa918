"""The processed logits of rows: removal, then the bias, then the penalties."""

from collections.abc import Sequence as Many

import torch

from batchspec.sampling.constraints import remove_forbidden
from batchspec.sampling.penalties import add_bias, apply_penalties
from batchspec.sampling.rows import Row
from batchspec.sampling.truncation import scale, truncate
from batchspec.step import TokenMasks

__all__ = ["process", "warp"]


def process(rows: Many[Row], logits: torch.Tensor, *, masks: TokenMasks | None = None) -> torch.Tensor:
    """Return float64 (rows, vocabulary): everything but temperature and truncation applied.

    Args:
        rows: what they continue.
        logits: (rows, vocabulary), the model's own, any floating dtype; stays as it is.
        masks: the grammars' masks of the whole step.
    """
    block = logits.to(torch.float64, copy=True)
    remove_forbidden(block, rows, masks=masks)
    add_bias(block, rows)
    apply_penalties(block, rows)
    return block


def warp(rows: Many[Row], processed: torch.Tensor) -> torch.Tensor:
    """Return float64 (rows, vocabulary): the logits divided by the temperature, then truncated.

    Args:
        rows: whose temperature is above 0.
        processed: float64 (rows, vocabulary), from ``process``.
    """
    return truncate(
        scale(processed, temperature=[row.sampling.temperature for row in rows]),
        top_k=[row.sampling.top_k for row in rows],
        top_p=[row.sampling.top_p for row in rows],
        min_p=[row.sampling.min_p for row in rows],
    )
