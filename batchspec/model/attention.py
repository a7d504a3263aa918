"""The attention function that transformers' models call once they are switched to ``batchspec``.

It stores the new rows' keys and values in the pages of their sequences and lets each row see its own sequence only.
Source of the interface: the transformers documentation page "Attention interface".
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import set_num_threads
from numba.core.config import NUMBA_NUM_THREADS
from numpy.typing import NDArray
from transformers import AttentionInterface

from batchspec.errors import ModelError
from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.kernel import attend, attend_alone

__all__ = ["ATTENTION_NAME", "AttentionStep", "PackedRows", "attention_step", "paged_attention"]

ATTENTION_NAME = "batchspec"
_UNSET = object()
_WORTH_THREADS = 4_000_000  # products of scores, about a millisecond; below it threads cost more than they bring


@dataclass(frozen=True, kw_only=True)
class PackedRows:
    """Where the rows of a packed forward pass belong.

    Attributes:
        num_rows: rows that belong to a sequence; padding rows follow them.
        slots: int64 (num_rows,), ``block * block_size + offset`` of each row's page entry.
        tables: int32 (chunks, most blocks).
        row_chunk: int32 (all rows,), -1 for padding.
        row_position: int32 (all rows,).
        bounds: (first row, one past the last row, tokens in the sequence so far) of each chunk.
    """

    num_rows: int
    slots: torch.Tensor
    tables: NDArray[np.int32]
    row_chunk: NDArray[np.int32]
    row_position: NDArray[np.int32]
    bounds: list[tuple[int, int, int]]


@dataclass(kw_only=True)
class AttentionStep:
    """One forward pass: its rows, its cache, and how many attention calls it has made."""

    rows: PackedRows
    cache: KVCache
    num_calls: int = 0


_STEP: ContextVar[AttentionStep] = ContextVar("batchspec_attention_step")


@contextmanager
def attention_step(rows: PackedRows, cache: KVCache) -> Iterator[AttentionStep]:
    """Make rows and cache known to the attention calls of the forward pass inside."""
    step = AttentionStep(rows=rows, cache=cache)
    token = _STEP.set(step)
    try:
        yield step
    finally:
        _STEP.reset(token)


def paged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: Any = _UNSET,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attend over pages; rotary is already applied and grouped heads are not repeated.

    Args:
        module: the attention module that calls.
        query: (1, query heads, rows, D).
        key: (1, key heads, rows, D).
        value: (1, key heads, rows, Dv).
        attention_mask: must be None, since no mask function is registered under our name.
        scaling: factor on the scores, 1/sqrt(D) by default.
        sliding_window: positions a row sees; None for all; not given: looked up in the module, then its config.
        softcap: cap on the scores.
        s_aux: (query heads,) attention sinks.
        kwargs: anything else; those that would change the result are refused.

    Raises:
        ModelError: if the model asks for something that would be left out silently.
    """
    step = _STEP.get()
    refuse_unhandled(module, attention_mask, kwargs)
    window = window_of(module) if sliding_window is _UNSET else sliding_window
    layout = KVLayout(num_kv_heads=key.shape[1], key_dim=key.shape[3], value_dim=value.shape[3])
    keys, values = step.cache.layer(step.num_calls, layout)
    step.num_calls += 1
    rows = step.rows
    keys.view(-1, layout.num_kv_heads, layout.key_dim)[rows.slots] = (
        key[0].transpose(0, 1)[: rows.num_rows].to(keys.dtype)
    )
    values.view(-1, layout.num_kv_heads, layout.value_dim)[rows.slots] = (
        value[0].transpose(0, 1)[: rows.num_rows].to(values.dtype)
    )
    settings = (int(window or 0), query.shape[3] ** -0.5 if scaling is None else scaling, softcap or 0.0, s_aux)
    compute = _on_cpu if query.device.type == "cpu" else _on_device
    out = compute(query[0].transpose(0, 1), keys, values, rows, *settings)
    return out.to(query.dtype)[None], None


def refuse_unhandled(module: torch.nn.Module, attention_mask: torch.Tensor | None, kwargs: dict[str, Any]) -> None:
    """Raise ModelError for a mask or an argument that the kernels do not handle."""
    if attention_mask is not None:
        raise ModelError(f"{type(module).__name__} builds a mask of its own, which paged attention does not handle")
    for name in ("position_bias", "indices", "head_mask", "cu_seq_lens_q"):
        if kwargs.get(name) is not None:
            raise ModelError(f"{type(module).__name__} passes {name}, which paged attention does not handle")
    if kwargs.get("is_causal") is False or getattr(module, "is_causal", True) is False:
        raise ModelError(f"{type(module).__name__} attends in both directions, which generation cannot use")


def window_of(module: torch.nn.Module) -> int | None:
    """Return the sliding window of a layer whose call does not tell: the module's, else that of its config."""
    if hasattr(module, "sliding_window"):
        own: Any = module.sliding_window
        return int(own) if own else None
    config = getattr(module, "config", None)
    layer_types = getattr(config, "layer_types", None)
    layer = getattr(module, "layer_idx", None)
    if layer_types is not None and layer is not None and layer_types[layer] != "sliding_attention":
        return None
    found: int | None = getattr(config, "sliding_window", None)
    return found


def _on_cpu(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    rows: PackedRows,
    window: int,
    scale: float,
    softcap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return float32 (rows, query heads, Dv) from the compiled kernel."""
    out = torch.empty((*query.shape[:2], values.shape[3]), dtype=torch.float32)
    sink_logits = torch.empty(0) if sinks is None else sinks.detach().float().reshape(-1)
    num_threads = min(torch.get_num_threads(), NUMBA_NUM_THREADS)
    num_products = int(rows.row_position.sum()) * query.shape[1] * query.shape[2]
    if num_threads == 1 or num_products < _WORTH_THREADS:
        compute = attend_alone
    else:
        compute = attend
        set_num_threads(num_threads)
    compute(
        query.detach().float().contiguous().numpy(),
        keys.numpy(),
        values.numpy(),
        rows.tables,
        rows.row_chunk,
        rows.row_position,
        window,
        scale,
        softcap,
        sink_logits.contiguous().numpy(),
        out.numpy(),
    )
    return out


def _on_device(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    rows: PackedRows,
    window: int,
    scale: float,
    softcap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return (rows, query heads, Dv) from plain torch operations, one chunk at a time, on any device."""
    out = query.new_zeros((*query.shape[:2], values.shape[3]))
    group = query.shape[1] // keys.shape[2]
    tables = torch.from_numpy(rows.tables).to(query.device)
    for chunk, (first, last, end) in enumerate(rows.bounds):
        blocks = tables[chunk, : -(-end // keys.shape[1])].long()
        k = keys[blocks].flatten(0, 1)[:end].repeat_interleave(group, dim=1)
        v = values[blocks].flatten(0, 1)[:end].repeat_interleave(group, dim=1)
        scores = torch.einsum("qhd,khd->hqk", query[first:last].float(), k.float()) * scale
        if softcap:
            scores = softcap * (scores / softcap).tanh()
        row = torch.arange(end - (last - first), end, device=query.device)[:, None]
        column = torch.arange(end, device=query.device)[None]
        seen = (column <= row) & (column > row - window) if window else column <= row
        scores = scores.masked_fill(~seen, -torch.inf)
        if sinks is not None:
            column_of_sinks = sinks.float().reshape(-1, 1, 1).expand(-1, last - first, 1)
            scores = torch.cat([scores, column_of_sinks], dim=-1)
        weights = scores.softmax(dim=-1)[..., :end]
        out[first:last] = torch.einsum("hqk,khd->qhd", weights, v.float()).to(out.dtype)
    return out


AttentionInterface.register(ATTENTION_NAME, paged_attention)
