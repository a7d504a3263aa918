"""How far a difference between two runs could be chance: requests drawn again, each with its answers in both runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchspec.compare.measures import Measure
from batchspec.report.logs.bootstrap import SEED, assign_units, interval, resampled_ratios

__all__ = ["Intervals", "paired_intervals"]

_AT_A_TIME = 256  # measures, so that memory does not grow with the number of categories

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """How sure a measure is; None where the draws tell nothing.

    Attributes:
        runs: of the value in either run.
        difference: of the second value less the first.
        ratio: of the second value over the first.
    """

    runs: tuple[Interval | None, Interval | None] = (None, None)
    difference: Interval | None = None
    ratio: Interval | None = None


def paired_intervals(measures: Sequence[Measure], *, num_pairs: int) -> list[Intervals]:
    """Return the intervals of every measure; the same input gives the same intervals.

    Args:
        measures: over the same pairs, which are drawn as a whole.
        num_pairs: all of them, those that take no part in a measure included.
    """
    found: list[Intervals] = []
    for start in range(0, len(measures), _AT_A_TIME):
        some = measures[start : start + _AT_A_TIME]
        generator = np.random.default_rng(SEED)
        units = assign_units(num_pairs, generator)
        tops = np.concatenate([_by_unit(one.numerators, one.places, units) for one in some], axis=1)
        bottoms = np.concatenate([_by_unit(one.denominators, one.places, units) for one in some], axis=1)
        drawn = resampled_ratios(tops, bottoms, generator)
        found += [_intervals(one, drawn[:, 2 * i], drawn[:, 2 * i + 1]) for i, one in enumerate(some)]
    return found


def _by_unit(rows: NDArray[np.float64], places: NDArray[np.intp], units: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return (units, 2): the sums of (2, n) over the pairs of each unit that take part."""
    num_units = int(units.max()) + 1
    return np.stack([np.bincount(units[places], weights=row, minlength=num_units) for row in rows], axis=1)


def _intervals(measure: Measure, first: NDArray[np.float64], second: NDArray[np.float64]) -> Intervals:
    """Return the intervals from the draws; none where fewer than two pairs weigh anything, as one cannot vary."""
    if np.count_nonzero(measure.denominators, axis=1).min() < 2:
        return Intervals()
    a, b = measure.offset + first, measure.offset + second
    quotient = np.divide(b, a, out=np.full_like(a, np.nan), where=(a != 0) & ~np.isnan(a))
    return Intervals(runs=(interval(a), interval(b)), difference=interval(b - a), ratio=interval(quotient))
