"""How far a ratio would move if other requests of the same kind had been asked: bootstrap intervals over requests.

The percentile interval of Efron (An Introduction to the Bootstrap, Efron and Tibshirani 1993, chapter 13): requests are
drawn with replacement, as many as there are, and every ratio is computed anew from each draw.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONFIDENCE", "MAX_UNITS", "NUM_RESAMPLES", "SEED", "assign_units", "interval", "resampled_ratios"]

NUM_RESAMPLES = 2000
SEED = 0
CONFIDENCE = 0.95
MAX_UNITS = 2048
"""Above so many requests, as many random groups of requests of equal number are drawn instead of single ones. The sums
of such groups vary as the sums of their requests do, so the interval is the same; its width is off by 1 or 2 per cent.
"""

_CHUNK_CELLS = 2**13  # small enough for a product on one thread: to wake others costs more than they save

Floats = NDArray[np.float64]


def assign_units(num_requests: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Return for each request the unit that is drawn with it: itself, or its random group."""
    if num_requests <= MAX_UNITS:
        return np.arange(num_requests)
    units: NDArray[np.intp] = generator.permutation(num_requests) % MAX_UNITS
    return units


def resampled_ratios(numerators: Floats, denominators: Floats, generator: np.random.Generator) -> Floats:
    """Return the ratios of every resample, NaN where a resample has nothing to divide by.

    All ratios of a resample are made of the same drawn units.

    Args:
        numerators: (units, ratios) sums over each unit's requests.
        denominators: (units, ratios) the same.
        generator: what draws.

    Returns:
        (``NUM_RESAMPLES``, ratios).
    """
    sums = np.concatenate([numerators, denominators], axis=1)
    drawn = np.concatenate([weights @ sums for weights in _weights(len(sums), generator)])
    above, below = np.split(drawn, 2, axis=1)
    ratios: Floats = np.divide(above, below, out=np.full_like(above, np.nan), where=below != 0)
    return ratios


def _weights(num_units: int, generator: np.random.Generator) -> Iterator[Floats]:
    """Yield (some resamples, units): how often each unit is drawn."""
    num_rows = max(1, _CHUNK_CELLS // max(num_units, 1))
    for start in range(0, NUM_RESAMPLES, num_rows):
        rows = min(num_rows, NUM_RESAMPLES - start)
        picks = generator.integers(0, num_units, size=(rows, num_units), dtype=np.uint16).astype(np.intp)
        picks += np.arange(rows)[:, None] * num_units
        yield np.bincount(picks.ravel(), minlength=rows * num_units).reshape(rows, num_units).astype(np.float64)


def interval(draws: Floats) -> tuple[float, float] | None:
    """Return the middle ``CONFIDENCE`` of (resamples,) draws; None where no draw has a value."""
    valid = draws[~np.isnan(draws)]
    if not len(valid):
        return None
    low, high = np.quantile(valid, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
