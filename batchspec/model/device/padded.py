"""Attention over pages by ordinary torch operations, on any device: keys are gathered tile by tile and padded.

A tile is a piece of one sequence's rows. Grouped heads are not repeated: the query heads that share a key head are
rows beside each other.
"""

from collections.abc import Iterator

import torch

from batchspec.model.device.rows import DeviceRows

__all__ = ["attend_padded"]

_MOST_NUMBERS = 1 << 27  # gathered, or scores, at a time; half a gigabyte in float32


def attend_padded(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    *,
    rows: DeviceRows,
    window: int,
    scale: float,
    softcap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return (rows, query heads, Dv) in the query's type, what each row sees of its own sequence; padding: anything.

    Args:
        query: (rows, query heads, D).
        keys: (blocks, block size, key heads, D), this step's already stored.
        values: (blocks, block size, key heads, Dv).
        rows: where the rows belong.
        window: positions that a row sees at the most, its own included; 0 for all.
        scale: factor on the scores.
        softcap: cap on the scores; 0 for none.
        sinks: (query heads,) of extra logits that take probability and carry no value.
    """
    num_kv_heads = keys.shape[2]
    group = query.shape[1] // num_kv_heads
    folded = _fold(query[rows.query_rows], num_kv_heads)
    seen = rows.seen(window=window, group=group)[:, None]
    by_hand = bool(softcap) or sinks is not None
    extra = None if sinks is None else _fold_sinks(sinks, num_kv_heads, rows.tile_rows)
    attended = []
    for part in _parts(folded, values, num_keys=rows.num_keys, has_scores=by_hand):
        slots = rows.key_slots[part]
        key, value = (pages.flatten(0, 1)[slots].transpose(1, 2) for pages in (keys, values))
        if by_hand:
            out = _attend_by_hand(folded[part], key, value, seen[part], scale=scale, softcap=softcap, extra=extra)
        else:
            given = folded[part].to(key.dtype)
            out = torch.nn.functional.scaled_dot_product_attention(given, key, value, attn_mask=seen[part], scale=scale)
        attended.append(out.to(query.dtype))
    return _unfold(torch.cat(attended), group)[rows.places]


def _attend_by_hand(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    seen: torch.Tensor,
    *,
    scale: float,
    softcap: float,
    extra: torch.Tensor | None,
) -> torch.Tensor:
    """Return float32 (tiles, key heads, queries, Dv), with what ``scaled_dot_product_attention`` cannot do."""
    scores = query.float() @ key.float().transpose(-1, -2) * scale
    if softcap:
        scores = softcap * (scores / softcap).tanh()
    scores = scores.masked_fill(~seen, -torch.inf)
    if extra is not None:
        scores = torch.cat([scores, extra.expand(len(scores), -1, -1, -1)], dim=-1)
    weights = scores.softmax(dim=-1)[..., : key.shape[2]]
    return weights @ value.float()


def _fold(tiles: torch.Tensor, num_kv_heads: int) -> torch.Tensor:
    """Return (tiles, key heads, group * tile rows, D) of queries (tiles, tile rows, query heads, D)."""
    num_tiles, num_rows, _, dim = tiles.shape
    return tiles.view(num_tiles, num_rows, num_kv_heads, -1, dim).permute(0, 2, 3, 1, 4).flatten(2, 3)


def _unfold(folded: torch.Tensor, group: int) -> torch.Tensor:
    """Return (tiles * tile rows, query heads, Dv) of results (tiles, key heads, group * tile rows, Dv)."""
    num_tiles, num_kv_heads, _, dim = folded.shape
    return folded.view(num_tiles, num_kv_heads, group, -1, dim).permute(0, 3, 1, 2, 4).flatten(2, 3).flatten(0, 1)


def _fold_sinks(sinks: torch.Tensor, num_kv_heads: int, tile_rows: int) -> torch.Tensor:
    """Return float32 (1, key heads, group * tile rows, 1)."""
    return sinks.float().reshape(1, num_kv_heads, -1, 1).repeat_interleave(tile_rows, dim=2)


def _parts(folded: torch.Tensor, values: torch.Tensor, *, num_keys: int, has_scores: bool) -> Iterator[slice]:
    """Yield slices of the tiles that bound the memory; one in the usual case."""
    num_tiles, num_kv_heads, num_queries, dim = folded.shape
    widest = max(dim, values.shape[3], num_queries if has_scores else 0)
    size = max(1, _MOST_NUMBERS // (num_keys * num_kv_heads * widest))
    for first in range(0, num_tiles, size):
        yield slice(first, first + size)
