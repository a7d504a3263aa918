"""Tokens in blocks, whose largest logits tell where to look."""

import torch

__all__ = ["BLOCK", "block_tops", "ids_from"]

BLOCK = 64


def block_tops(logits: torch.Tensor) -> torch.Tensor:
    """Return (rows, blocks): the largest logit of every block of tokens; the last block may be shorter.

    Args:
        logits: (rows, vocabulary).
    """
    num_rows, num_tokens = logits.shape
    whole = num_tokens - num_tokens % BLOCK
    parts = [logits[:, :whole].reshape(num_rows, whole // BLOCK, BLOCK).amax(dim=-1)] if whole else []
    if whole < num_tokens:
        parts.append(logits[:, whole:].amax(dim=-1, keepdim=True))
    return torch.cat(parts, dim=-1)


def ids_from(row: torch.Tensor, tops: torch.Tensor, floor: float) -> torch.Tensor:
    """Return int64, ascending: the tokens of a row whose logit is at least ``floor``.

    Args:
        row: (vocabulary,).
        tops: (blocks,), from ``block_tops``.
        floor: a number that the row's dtype can hold.
    """
    starts = (tops >= floor).nonzero() * BLOCK
    if 2 * len(starts) > len(tops):
        return (row >= floor).nonzero().squeeze(-1)
    ids = (starts + torch.arange(BLOCK, device=row.device)).flatten()
    if len(row) % BLOCK:
        ids = ids[ids < len(row)]
    return ids[row[ids] >= floor]
