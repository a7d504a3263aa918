"""Gumbel-max: the token with the largest logit plus noise, with noise only where it can still change the outcome."""

import math
from typing import Any

import numpy as np
import torch

from batchspec.compiled import compiled, inner
from batchspec.sampling.blocks import BLOCK, block_tops
from batchspec.sampling.moving import beside
from batchspec.sampling.noise import gumbel_noise
from batchspec.threads import over_rows

__all__ = ["draw", "draw_among", "draw_on_device", "least_bits", "noise", "noise_bits", "reaches"]

_NOISE_RANGE = 42.0  # the noise lies in (-3.7, 37): a token further below the maximum than this cannot win

_WORTH_THREADS = 1 << 17  # tokens, half a millisecond
_ONE = 2.0**52  # of noise bits
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S12, _S27, _S30, _S31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)


@inner
def noise_bits(key: Any, token: int) -> Any:
    """Return the 52 bits of a key and a vocabulary id, from which ``noise.gumbel_noise`` makes the noise."""
    bits = key + _GOLDEN * np.uint64(token + 1)
    bits = (bits ^ (bits >> _S30)) * _FIRST
    bits = (bits ^ (bits >> _S27)) * _SECOND
    bits = bits ^ (bits >> _S31)
    return bits >> _S12


@inner
def noise(bits: Any) -> float:
    """Return -log(-log(u)) of the number u in (0, 1) that bits stand for."""
    return -math.log(-math.log((np.float64(bits) + 0.5) * 2.0**-52))


@inner
def least_bits(lead: float) -> Any:
    """Return bits that the noise has at least if it is more than minus ``lead``.

    The noise of u is at most -log(1 - u), since -log(u) >= 1 - u. So it is more than -lead only where 1 - u is below
    exp(lead); the bits are taken a little lower, for what rounding may do.
    """
    share = 1.000001 * math.exp(min(0.0, lead))
    return np.uint64(max(0.0, math.floor((1.0 - share) * _ONE) - 2.0)) if share < 1.0 else np.uint64(0)


@inner
def reaches(key: Any, first: int, last: int, least: Any) -> bool:
    """Return whether a token of a range has at least such bits."""
    count = 0
    for token in range(first, last):
        count += noise_bits(key, token) >= least
    return count > 0


@compiled(nogil=True)
def _draw_some(logits: Any, tops: Any, highest: Any, temperature: Any, keys: Any, chosen: Any) -> None:
    """Write what ``draw`` returns, given the largest logit of every block of tokens, (rows, blocks)."""
    for i in range(len(logits)):
        row, best = logits[i], -np.inf
        for block in range(tops.shape[1]):
            first, last = block * BLOCK, min((block + 1) * BLOCK, len(row))
            lead = (np.float64(tops[i, block]) - highest[i]) / temperature[i] - best
            if not reaches(keys[i], first, last, least_bits(lead)):
                continue
            for token in range(first, last):
                scaled = (np.float64(row[token]) - highest[i]) / temperature[i]
                bits = noise_bits(keys[i], token)
                if scaled == -np.inf or bits < least_bits(scaled - best):
                    continue
                perturbed = scaled + noise(bits)
                if perturbed > best:
                    best, chosen[i] = perturbed, token


def draw(logits: torch.Tensor, *, highest: Any, temperature: Any, keys: Any) -> torch.Tensor:
    """Return int64 (rows,): the first token with the largest ``(logit - highest) / temperature + noise`` of each.

    Args:
        logits: float32 or float64 (rows, vocabulary) on the CPU, minus infinity where a token is removed.
        highest: float64 (rows,), the largest logit of each, so that nothing overflows.
        temperature: float64 (rows,), above 0.
        keys: uint64 (rows,), from ``noise.noise_key``.
    """
    tops, numbers = block_tops(logits).numpy(), logits.numpy()
    chosen = np.zeros(len(numbers), dtype=np.int64)

    def work(part: slice) -> None:
        _draw_some(numbers[part], tops[part], highest[part], temperature[part], keys[part], chosen[part])

    over_rows(torch.get_num_threads() if numbers.size >= _WORTH_THREADS else 1, len(numbers), work)
    return torch.from_numpy(chosen)


@compiled(nogil=True)
def _draw_among(scaled: Any, ids: Any, keys: Any, chosen: Any) -> None:
    for i in range(len(scaled)):
        best = -np.inf
        for place in range(scaled.shape[1]):
            bits = noise_bits(keys[i], ids[i, place])
            if scaled[i, place] == -np.inf or bits < least_bits(scaled[i, place] - best):
                continue
            perturbed = scaled[i, place] + noise(bits)
            if perturbed > best:
                best, chosen[i] = perturbed, ids[i, place]


def draw_among(scaled: torch.Tensor, *, ids: torch.Tensor, keys: Any) -> torch.Tensor:
    """Return int64 (rows,) drawn as by ``draw`` from some tokens of each row.

    Args:
        scaled: float64 (rows, width) on the CPU, logits over the temperature, the largest of each row being 0.
        ids: int64 (rows, width), of the tokens, ascending.
        keys: uint64 (rows,), from ``noise.noise_key``.
    """
    chosen = np.zeros(len(scaled), dtype=np.int64)
    _draw_among(scaled.numpy(), ids.numpy(), keys, chosen)
    return torch.from_numpy(chosen)


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
