"""A decoder's screen, and the scales that make its limits close."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.cache import KVCache
from batchspec.model.native.decoder import Decoder
from batchspec.model.paging import Floats, PackedRows
from batchspec.model.screening import Screen
from batchspec.model.strips import StripLinear

__all__ = ["screen_for"]

_WORTH_SCREENING = 30_000_000  # weights of a head, far more than caches hold
_BLOCK_SIZE = 16
_FURTHEST = 64.0  # a scale is from the middle one, up or down
_SAMPLE = """The committee met on Tuesday to discuss the new bridge. Several members asked how much it would cost, and
whether the old one could be repaired instead. "We have looked at both," the engineer said, "and neither is cheap." In
2019 the town spent 3.5 million on roads; the bridge alone would take twice that.

def total(values: list[float]) -> float:
    result = 0.0
    for value in values:
        if value > 0:
            result += value
    return result

print(total([1.5, -2.0, 3.25]))
"""


def screen_for(decoder: Decoder, head: torch.Tensor, tokenizer: Any) -> Screen | None:
    """Return what finds the head's largest output, None where that is not exact or saves nothing.

    Args:
        decoder: without a screen.
        head: its weight (vocabulary, hidden), as stored.
        tokenizer: of the model.
    """
    packed = decoder.weights.head
    is_alone = not decoder.shape.final_softcap  # which may make different logits equal
    if not (is_alone and head.numel() >= _WORTH_SCREENING and isinstance(packed, StripLinear) and packed.bias is None):
        return None
    try:
        token_ids = tokenizer(_SAMPLE, add_special_tokens=True).input_ids[: decoder.shape.context_length]
        is_known = bool(token_ids) and max(token_ids) < decoder.shape.vocab_size
        return Screen(head, packed, scales=_scales(_states(decoder, token_ids), head) if is_known else None)
    except ValueError:
        return None


def _scales(states: Floats, head: torch.Tensor) -> NDArray[np.float64]:
    """Return float64 (hidden,): what makes inputs and their weights vary alike.

    Source: Xiao et al., "SmoothQuant" (2023), section 4.2, with root mean squares and the strength 1/2. What the scales
    are changes no result, only how many products have to be computed.
    """
    of_states = np.sqrt(np.square(states, dtype=np.float64).mean(axis=0))
    of_weights = np.linalg.norm(head[:: max(1, len(head) >> 14)].double().numpy(), axis=0)
    with np.errstate(all="ignore"):
        scales = np.sqrt(of_states / of_weights)
        scales /= np.median(scales)
    usual: NDArray[np.float64] = np.clip(np.nan_to_num(scales, nan=1.0), 1 / _FURTHEST, _FURTHEST)
    return usual


@torch.inference_mode()
def _states(decoder: Decoder, token_ids: list[int]) -> Floats:
    """Return float32 (tokens, hidden): what the head multiplies in a text."""
    count = len(token_ids)
    num_blocks = -(-count // _BLOCK_SIZE)
    positions = torch.arange(count)
    cache = KVCache(num_blocks=num_blocks, block_size=_BLOCK_SIZE, dtype=torch.float32, device=torch.device("cpu"))
    rows = PackedRows(
        num_rows=count,
        slots=positions,
        tables=np.arange(num_blocks, dtype=np.int32)[None],
        row_chunk=np.zeros(count, dtype=np.int32),
        row_position=np.arange(count, dtype=np.int32),
    )
    return decoder.states(torch.tensor(token_ids), positions, rows=rows, cache=cache, wanted=positions)
