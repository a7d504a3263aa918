"""The way of rows on a device, walked on the CPU: layouts as ``DeviceRows``, and a stand-in for torch's kernel."""

from typing import Any

import numpy as np
import torch

from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.device.attend import attend_on_device
from batchspec.model.device.freight import join, split
from batchspec.model.device.layout import lay_out
from batchspec.model.device.rows import DeviceRows
from batchspec.model.device.shape import StepShape, exact_shape
from batchspec.model.device.span import Span
from batchspec.model.device.varlen_form import VarlenForm

from .generating import CPU
from .paging import Layout, fresh


def spans_of_layout(layout: Layout, tensors: dict[str, Any]) -> list[Span]:
    """Return the layout's sequences as spans."""
    return [
        Span(
            token_ids=np.zeros(new, dtype=np.int64),
            start=total - new,
            blocks=table[: -(-total // layout.block_size)].tolist(),
        )
        for (total, new), table in zip(layout.lengths, tensors["rows"].tables, strict=True)
    ]


def compute_on_device(
    layout: Layout,
    tensors: dict[str, Any],
    *,
    dtype: torch.dtype = torch.float32,
    form: VarlenForm | None = None,
    shape: StepShape | None = None,
) -> torch.Tensor:
    """Return (rows, heads, Dv) as a device computes them, padding rows of the shape included.

    Args:
        layout: how rows attend.
        tensors: from ``layout.tensors``.
        dtype: of queries and pages.
        form: how the variable-length kernel is called; None for gathered keys.
        shape: of the step; None for the layout's own number of rows.
    """
    spans = spans_of_layout(layout, tensors)
    shape = shape or exact_shape(spans, row_counts=lambda num_rows: num_rows + layout.num_padding)
    keys, values = tensors["keys"], tensors["values"]
    cache = KVCache(num_blocks=len(keys), block_size=layout.block_size, dtype=dtype, device=CPU, in_strips=False)
    pages = cache.layer(0, KVLayout(num_kv_heads=keys.shape[2], key_dim=keys.shape[3], value_dim=values.shape[3]))
    own_key, own_value, old_keys, old_values = fresh(tensors)
    for side, old in zip(pages, (old_keys, old_values), strict=True):
        side[: len(old)] = old
        side[len(old) + 1] = torch.nan  # the trash, which nobody may read
    arrays = lay_out(
        spans,
        shape,
        wanted=np.zeros(1, dtype=np.int64),
        block_size=layout.block_size,
        trash_slot=cache.trash_slot,
    )
    rows = DeviceRows.of(split(join(arrays, device=CPU), like=arrays), shape=shape, cache=cache, varlen=form)
    query, key, value = (resized(each, shape.num_rows).to(dtype) for each in (tensors["query"], own_key, own_value))
    return attend_on_device(
        query,
        key,
        value,
        layer=pages,
        rows=rows,
        window=layout.window,
        scale=0.3,
        softcap=layout.softcap,
        sinks=tensors["sinks"],
    )


def resized(rows: torch.Tensor, size: int) -> torch.Tensor:
    """Return so many rows: what lacks is of ones."""
    return torch.cat([rows[:size], torch.ones(max(0, size - len(rows)), *rows.shape[1:])])


class StandIn:
    """Does what torch documents of ``varlen_attn``, after the checks that its sources make.

    Args:
        page_multiple: page sizes must be multiples of it.
        has_key_starts: whether cumulative numbers of keys must be given; otherwise they must not.
        error: added to every result.
    """

    def __init__(self, *, page_multiple: int = 1, has_key_starts: bool = True, error: float = 0.0):
        self.page_multiple = page_multiple
        self.has_key_starts = has_key_starts
        self.error = error
        self.num_calls = 0

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        cu_seq_q: torch.Tensor,
        cu_seq_k: torch.Tensor | None,
        max_q: int,
        max_k: int,
        *,
        return_aux: None = None,
        scale: float | None = None,
        window_size: tuple[int, int] = (-1, -1),
        enable_gqa: bool = False,
        seqused_k: torch.Tensor | None = None,
        block_table: torch.Tensor | None = None,
        num_splits: int | None = None,
    ) -> torch.Tensor:
        self.num_calls += 1
        assert seqused_k is not None
        assert block_table is not None
        assert scale is not None
        assert enable_gqa
        assert num_splits == 1
        if key.shape[1] % self.page_multiple:
            raise RuntimeError("Paged KV cache block size must be divisible by more")
        if (cu_seq_k is not None) != self.has_key_starts:
            raise RuntimeError("cumulative numbers of keys")
        num_sequences = len(cu_seq_q) - 1
        given = [cu_seq_q, seqused_k, block_table] + ([] if cu_seq_k is None else [cu_seq_k])
        assert all(each.dtype == torch.int32 and each.is_contiguous() for each in given)
        assert len(seqused_k) == len(block_table) == num_sequences
        assert max_k == block_table.shape[1] * key.shape[1] >= int(seqused_k.max())
        counts = cu_seq_q.diff()
        assert int(counts.max()) <= max_q
        if max_q == 1 and window_size == (-1, -1):  # the kernel then reads one row of each sequence
            assert bool((counts == 1).all())
            assert len(query) == num_sequences
        out = torch.full((*query.shape[:2], value.shape[3]), torch.nan, dtype=query.dtype)
        for number in range(num_sequences):
            first, last, used = int(cu_seq_q[number]), int(cu_seq_q[number + 1]), int(seqused_k[number])
            slots = (block_table[number].long()[:, None] * key.shape[1] + torch.arange(key.shape[1])).flatten()[:used]
            seen = _seen(last - first, used, window_size)
            out[first:last] = _attend(
                query[first:last], key.flatten(0, 1)[slots], value.flatten(0, 1)[slots], seen, scale=scale
            )
        return out + self.error


def _seen(num_rows: int, num_keys: int, window: tuple[int, int]) -> torch.Tensor:
    """Return bool (rows, keys): the last row stands at the last key, from which windows are counted; -1 is no bound."""
    row = torch.arange(num_rows)[:, None] + num_keys - num_rows
    column = torch.arange(num_keys)[None]
    left, right = window
    seen = torch.ones(num_rows, num_keys, dtype=torch.bool)
    if left >= 0:
        seen &= column >= row - left
    if right >= 0:
        seen &= column <= row + right
    return seen


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, seen: torch.Tensor, *, scale: float
) -> torch.Tensor:
    group = query.shape[1] // key.shape[1]
    key, value = (each.float().repeat_interleave(group, dim=1) for each in (key, value))
    scores = torch.einsum("qhd,khd->hqk", query.float(), key) * scale
    weights = scores.masked_fill(~seen, -torch.inf).softmax(dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, value).to(query.dtype)
