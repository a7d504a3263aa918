"""Gumbel-max: the token with the largest logit plus noise, with noise only where it can still change the outcome."""

import math
from typing import Any

import numpy as np
import torch

from batchspec.compiled import compiled
from batchspec.sampling.moving import beside
from batchspec.sampling.noise import gumbel_noise

__all__ = ["draw", "draw_on_device"]

_NOISE_RANGE = 42.0  # the noise lies in (-3.7, 37): a token further below the maximum than this cannot win

_MOST_NOISE = 37.0
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S12, _S27, _S30, _S31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)


@compiled()
def _uniform(key: Any, token: int) -> float:
    """Return the number in (0, 1) of a key and a vocabulary id, as ``noise.gumbel_noise`` makes it."""
    bits = key + _GOLDEN * np.uint64(token + 1)
    bits = (bits ^ (bits >> _S30)) * _FIRST
    bits = (bits ^ (bits >> _S27)) * _SECOND
    bits = bits ^ (bits >> _S31)
    return (np.float64(bits >> _S12) + 0.5) * 2.0**-52


@compiled()
def draw(logits: Any, rows: Any, highest: Any, temperature: Any, keys: Any) -> Any:
    """Return int64 (drawn rows,): the first token with the largest ``(logit - highest) / temperature + noise`` of each.

    The noise -log(-log(u)) of a uniform u is at most -log(1 - u), since -log(u) >= 1 - u. So a token whose 1 - u is
    above exp(scaled logit - best) cannot beat the best so far, and its two logarithms are spared.

    Args:
        logits: float32 or float64 (rows, vocabulary), minus infinity where a token is removed.
        rows: int64 (drawn rows,), which of them to draw from.
        highest: float64 (drawn rows,), the largest logit of each, so that nothing overflows.
        temperature: float64 (drawn rows,), above 0.
        keys: uint64 (drawn rows,), from ``noise.noise_key``.
    """
    chosen = np.zeros(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        row = logits[rows[i]]
        best = -np.inf
        for token in range(len(row)):
            scaled = (np.float64(row[token]) - highest[i]) / temperature[i]
            if scaled + _MOST_NOISE < best or scaled == -np.inf:
                continue
            uniform = _uniform(keys[i], token)
            if 1.0 - uniform > math.exp(min(0.0, scaled - best)) * 1.000001:
                continue
            perturbed = scaled - math.log(-math.log(uniform))
            if perturbed > best:
                best, chosen[i] = perturbed, token
    return chosen


def draw_on_device(logits: torch.Tensor, keys: list[int]) -> torch.Tensor:
    """Return the same as ``draw`` by torch operations, on any device, which nobody has to wait for.

    All tokens get their noise: to find those that can win would mean to ask the device how many they are.

    Args:
        logits: float64 (rows, vocabulary).
        keys: (rows,), from ``noise.noise_key``.
    """
    key = beside(logits, np.array(keys, dtype=np.uint64).view(np.int64))[:, None]
    noise = gumbel_noise(key, torch.arange(logits.shape[-1], device=logits.device)[None])
    can_win = logits >= logits.amax(dim=-1, keepdim=True) - _NOISE_RANGE
    return (logits + noise).masked_fill_(~can_win, -torch.inf).argmax(dim=-1)
