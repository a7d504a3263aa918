"""The target's own token for each logit row: a deterministic function of logits, seed, sample and position.

Greedy at temperature 0. Otherwise Gumbel-max: the token with the largest ``logit / temperature + noise`` after
top-k, top-p and min-p, where the noise is keyed by seed, sample index, absolute position and vocabulary id. That draws
exactly from the processed distribution (Gumbel, 1954; Maddison et al., "A* Sampling", 2014), and it does not
depend on what else is in the batch or on how many tokens were drafted.
"""

from collections.abc import Sequence as Many

import torch

from batchspec.step import Chunk

__all__ = ["choose", "gumbel_noise", "noise_key", "truncate"]

_MASK64 = (1 << 64) - 1
_NOISE_RANGE = 42.0  # the noise lies in (-3.7, 37): a token further below the maximum than this cannot win


def choose(chunks: Many[Chunk], logits: torch.Tensor) -> torch.Tensor:
    """Return int64 (rows,): the target's token for every row.

    Args:
        chunks: the sampled chunks, in the order of their rows.
        logits: (rows, vocabulary), any floating dtype.
    """
    chosen = logits.argmax(dim=-1)
    rows: list[int] = []
    keys: list[int] = []
    params: list[tuple[float, int, float, float]] = []
    row = 0
    for chunk in chunks:
        sampling = chunk.sequence.sampling
        if sampling.temperature > 0:
            position = chunk.start + len(chunk.token_ids) - len(chunk.draft)
            rows += range(row, row + chunk.num_rows)
            keys += [
                noise_key(seed=sampling.seed, sample_index=chunk.sequence.sample_index, position=position + i)
                for i in range(chunk.num_rows)
            ]
            params += [(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p)] * chunk.num_rows
        row += chunk.num_rows
    if rows:
        index = torch.tensor(rows, device=logits.device)
        chosen[index] = _sample(logits[index].double(), keys=keys, params=params)
    return chosen


def _sample(logits: torch.Tensor, *, keys: list[int], params: list[tuple[float, int, float, float]]) -> torch.Tensor:
    """Return int64 (rows,) drawn by Gumbel-max from float64 logits (rows, vocabulary)."""
    temperature, top_k, top_p, min_p = zip(*params, strict=True)
    # below the maximum, so that the smallest temperature cannot push the likeliest token to infinity
    below = logits - logits.amax(dim=-1, keepdim=True)
    scaled = below / torch.tensor(temperature, dtype=torch.float64, device=logits.device)[:, None]
    scaled = truncate(scaled, top_k=top_k, top_p=top_p, min_p=min_p)
    rows, vocabulary = (scaled >= scaled.amax(dim=-1, keepdim=True) - _NOISE_RANGE).nonzero(as_tuple=True)
    key = torch.tensor([key - (1 << 64) if key >> 63 else key for key in keys], device=logits.device)
    perturbed = torch.full_like(scaled, -torch.inf)
    perturbed[rows, vocabulary] = scaled[rows, vocabulary] + gumbel_noise(key[rows], vocabulary)
    return perturbed.argmax(dim=-1)


def truncate(logits: torch.Tensor, *, top_k: Many[int], top_p: Many[float], min_p: Many[float]) -> torch.Tensor:
    """Return the logits with every token that top-k, then top-p, then min-p removes set to minus infinity.

    The order and the treatment of ties are those of transformers' logits processors: every token that ties with the
    k-th stays; the smallest set whose probability reaches top_p stays; probabilities are of what is left.

    Args:
        logits: float64 (rows, vocabulary), already divided by the temperature.
        top_k: for each row; 0 keeps all.
        top_p: for each row; 1 keeps all.
        min_p: for each row; 0 keeps all.
    """
    if not (any(top_k) or any(p < 1 for p in top_p) or any(min_p)):
        return logits
    num_vocabulary = logits.shape[-1]
    if any(top_k):
        k = torch.tensor([min(k, num_vocabulary) or num_vocabulary for k in top_k], device=logits.device)
        kth = logits.sort(dim=-1, descending=True).values.gather(-1, k[:, None] - 1)
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if any(p < 1 for p in top_p):
        p = torch.tensor(top_p, dtype=logits.dtype, device=logits.device)[:, None]
        values, order = logits.sort(dim=-1, stable=True)
        removed = values.softmax(dim=-1).cumsum(dim=-1) <= 1 - p
        removed[:, -1] = False
        removed &= p < 1
        logits = logits.masked_fill(torch.zeros_like(removed).scatter(-1, order, removed), -torch.inf)
    if any(min_p):
        ratio = torch.tensor(min_p, dtype=logits.dtype, device=logits.device)[:, None]
        probs = logits.softmax(dim=-1)
        logits = logits.masked_fill(probs < ratio * probs.amax(dim=-1, keepdim=True), -torch.inf)
    return logits


def noise_key(*, seed: int, sample_index: int, position: int) -> int:
    """Return the 64-bit key of one row's noise."""
    key = seed & _MASK64
    for part in (sample_index, position):
        key = _mix_int(key + 0x9E3779B97F4A7C15 * (part + 1))
    return key


def gumbel_noise(key: torch.Tensor, vocabulary: torch.Tensor) -> torch.Tensor:
    """Return float64 standard Gumbel noise, a function of key and vocabulary id alone.

    Args:
        key: int64, the bits of ``noise_key``.
        vocabulary: int64 of the same shape, token ids.
    """
    bits = _mix(key + _signed(0x9E3779B97F4A7C15) * (vocabulary + 1))
    uniform = ((_shift(bits, 12)).double() + 0.5) * 2.0**-52  # strictly inside (0, 1), exact in float64
    return -(-uniform.log()).log()


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _shift(bits: torch.Tensor, count: int) -> torch.Tensor:
    """Logical right shift of int64 bits."""
    return (bits >> count) & ((1 << (64 - count)) - 1)


def _mix(bits: torch.Tensor) -> torch.Tensor:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) on int64 bits."""
    bits = (bits ^ _shift(bits, 30)) * _signed(0xBF58476D1CE4E5B9)
    bits = (bits ^ _shift(bits, 27)) * _signed(0x94D049BB133111EB)
    return bits ^ _shift(bits, 31)


def _mix_int(bits: int) -> int:
    """The same finaliser on a Python integer."""
    bits &= _MASK64
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK64
    return bits ^ (bits >> 31)
