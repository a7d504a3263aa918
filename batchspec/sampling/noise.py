"""Gumbel noise that is a function of seed, sample, position and vocabulary id, and of nothing else."""

import torch

__all__ = ["gumbel_noise", "noise_key", "signed"]

_MASK64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # the increment of SplitMix64


def noise_key(*, seed: int, sample_index: int, position: int) -> int:
    """Return the 64-bit key of one row's noise."""
    key = seed & _MASK64
    for part in (sample_index, position):
        key = _mix_int(key + _GOLDEN * (part + 1))
    return key


def gumbel_noise(key: torch.Tensor, vocabulary: torch.Tensor) -> torch.Tensor:
    """Return float64 standard Gumbel noise, a function of key and vocabulary id alone.

    Args:
        key: int64, the bits of ``noise_key``.
        vocabulary: int64 of the same shape, or of one that goes with it, token ids.
    """
    bits = _mix(key + signed(_GOLDEN) * (vocabulary + 1))
    uniform = ((_shift(bits, 12)).double() + 0.5) * 2.0**-52  # strictly inside (0, 1), exact in float64
    return -(-uniform.log()).log()


def signed(value: int) -> int:
    """Return the number that has the same 64 bits as an int64."""
    return value - (1 << 64) if value >> 63 else value


def _shift(bits: torch.Tensor, count: int) -> torch.Tensor:
    """Logical right shift of int64 bits."""
    return (bits >> count) & ((1 << (64 - count)) - 1)


def _mix(bits: torch.Tensor) -> torch.Tensor:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) on int64 bits."""
    bits = (bits ^ _shift(bits, 30)) * signed(0xBF58476D1CE4E5B9)
    bits = (bits ^ _shift(bits, 27)) * signed(0x94D049BB133111EB)
    return bits ^ _shift(bits, 31)


def _mix_int(bits: int) -> int:
    """The same finaliser on a Python integer."""
    bits &= _MASK64
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK64
    return bits ^ (bits >> 31)
