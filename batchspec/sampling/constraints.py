"""Tokens that may not come next: the grammar's mask, allowed tokens, bad words and min_tokens.

What is removed gets a logit of minus infinity, so that nothing behind can bring it back.
"""

from collections.abc import Sequence as Many

import numpy as np
import torch

from batchspec.sampling.entries import Entries
from batchspec.sampling.moving import beside
from batchspec.sampling.rows import Row
from batchspec.step import TokenMasks

__all__ = ["forbidden_ids", "remove_forbidden"]


def remove_forbidden(block: torch.Tensor, rows: Many[Row], *, masks: TokenMasks | None) -> None:
    """Set what the rows may not choose to minus infinity, in place.

    Args:
        block: float64 (rows, vocabulary), the logits of ``rows``.
        rows: what they continue.
        masks: of the whole step; vocabulary entries behind the last word of bits are forbidden.
    """
    if masks is not None:
        _remove_masked(block, rows, masks)
    limited = [(i, row.sampling.allowed_token_ids) for i, row in enumerate(rows)]
    allowed = [(i, list(ids), 0.0) for i, ids in limited if ids is not None]
    if allowed:
        entries = Entries.collect(allowed, block=block)
        kept = entries.read(block)
        block[beside(block, np.array([i for i, _, _ in allowed], dtype=np.int64))] = -torch.inf
        entries.write(block, kept)
    forbidden = [(i, ids, -np.inf) for i, row in enumerate(rows) if (ids := forbidden_ids(row))]
    if forbidden:
        entries = Entries.collect(forbidden, block=block)
        entries.write(block, entries.amounts)


def forbidden_ids(row: Row) -> list[int]:
    """Return the tokens that bad words and min_tokens forbid in a row; some perhaps twice.

    A bad word forbids its last token where the tokens before, prompt included, are the rest of it.
    """
    ids: list[int] = []
    words = row.sequence.bad_words
    if words:
        tail = row.tail(max(len(word) for word in words))
        for word in words:
            rest = len(word) - 1
            if rest == 0 or (0 < rest <= len(tail) and tail[-rest:] == word[:-1]):
                ids.append(word[-1])
    if row.num_output_tokens < row.sampling.min_tokens:
        ids += row.sequence.stop_ids
        ids += row.sampling.stop_token_ids
    return ids


def _remove_masked(block: torch.Tensor, rows: Many[Row], masks: TokenMasks) -> None:
    """Apply the grammars' bits: bit v % 32 of word v // 32 says whether token v is allowed."""
    places = {int(number): place for place, number in enumerate(masks.rows)}
    masked = [(i, places[row.number]) for i, row in enumerate(rows) if row.number in places]
    if not masked:
        return
    words = masks.bits[[place for _, place in masked]]
    octets = beside(block, words.astype("<i4").view(np.uint8))
    bits = (octets[:, :, None] >> torch.arange(8, dtype=torch.uint8, device=block.device)) & 1
    forbidden = bits.flatten(start_dim=1)[:, : block.shape[-1]] == 0
    width = forbidden.shape[-1]
    for (i, _), row in zip(masked, forbidden, strict=True):
        block[i, :width].masked_fill_(row, -torch.inf)
        block[i, width:] = -torch.inf
