"""Freezing rotary frequencies that would otherwise depend on the longest neighbour in the packed batch."""

from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["freeze_frequencies"]

_MOVING = ("dynamic", "longrope")


def freeze_frequencies(module: torch.nn.Module, *, max_length: int) -> None:
    """Fix every dynamic or long rotary embedding at the frequencies it has for ``max_length`` positions.

    transformers recomputes those frequencies in each forward pass from the largest position in the batch, so that
    one long sequence would change all others. Fixed, a sequence's result depends on itself only; texts shorter than
    the original context can differ from transformers' own short-context frequencies.
    """
    parts: Iterator[Any] = module.modules()
    for part in parts:
        kinds = getattr(part, "rope_type", None)
        named = list(kinds.items()) if isinstance(kinds, dict) else [(None, kinds)]
        moving = [(layer_type, kind) for layer_type, kind in named if kind in _MOVING]
        for layer_type, _ in moving:
            _run_at(part, max_length=max_length, layer_type=layer_type)
        if moving:
            fixed = {name: "default" for name, _ in named} if isinstance(kinds, dict) else "default"
            part.rope_type = fixed


def _run_at(rotary: Any, *, max_length: int, layer_type: str | None) -> None:
    """Let a rotary embedding recompute its frequencies for the last position."""
    device = next(rotary.buffers()).device
    position = torch.tensor([[max_length - 1]], device=device)
    options = {} if layer_type is None else {"layer_type": layer_type}
    rotary(torch.zeros(1, 1, device=device), position, **options)
