"""The attention function that transformers' models call once they are switched to ``batchspec``.

It hands the new rows over to the pages of their sequences, of which each row sees its own only.
Source of the interface: the transformers documentation page "Attention interface".
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface

from batchspec.errors import ModelError
from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.paging import Rows, attend_paged

__all__ = ["ATTENTION_NAME", "AttentionStep", "attention_step", "paged_attention"]

ATTENTION_NAME = "batchspec"
_UNSET = object()


@dataclass(kw_only=True)
class AttentionStep:
    """One forward pass: its rows, its cache, and how many attention calls it has made."""

    rows: Rows
    cache: KVCache
    num_calls: int = 0


_STEP: ContextVar[AttentionStep] = ContextVar("batchspec_attention_step")


@contextmanager
def attention_step(rows: Rows, cache: KVCache) -> Iterator[AttentionStep]:
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
    layer = step.cache.layer(step.num_calls, layout)
    step.num_calls += 1
    out = attend_paged(
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        layer=layer,
        rows=step.rows,
        window=int(window or 0),
        scale=query.shape[3] ** -0.5 if scaling is None else scaling,
        softcap=softcap or 0.0,
        sinks=s_aux,
    )
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


AttentionInterface.register(ATTENTION_NAME, paged_attention)
