"""What a step costs by its number of rows, learnt while the steps run."""

from collections import deque
from statistics import median

import numpy as np

__all__ = ["StepCosts"]

_PER_DOUBLING = 2  # sizes that are told apart between a number of rows and its double
_MOST_SAMPLES = 9  # that a median is taken of; older ones are forgotten, since contexts grow and machines get busy


class StepCosts:
    """Medians of the latest steps of each size, and what lies between.

    Sizes that were never tried are taken to cost no more than the nearest smaller one that was, so that they get tried.
    """

    def __init__(self) -> None:
        self._samples: dict[int, deque[tuple[int, float]]] = {}
        self._rows = np.zeros(0)
        self._seconds = np.zeros(0)

    def observe(self, *, num_rows: int, seconds: float) -> None:
        """Note what a step took."""
        samples = self._samples.setdefault(_size(num_rows), deque(maxlen=_MOST_SAMPLES))
        samples.append((num_rows, seconds))
        known = sorted(self._samples)
        self._rows = np.array([median(rows for rows, _ in self._samples[size]) for size in known])
        medians = [median(seconds for _, seconds in self._samples[size]) for size in known]
        self._seconds = np.maximum.accumulate(medians)

    def is_known(self, num_rows: int) -> bool:
        """Whether a step of about so many rows was seen."""
        return _size(num_rows) in self._samples

    def seconds(self, num_rows: np.ndarray) -> np.ndarray:
        """Return what steps take, float64 (n,), by their rows, int64 (n,); at least one step must have been seen."""
        return np.interp(num_rows, self._rows, self._seconds)

    def table(self) -> dict[int, float]:
        """Return the seconds by rows."""
        return dict(zip(map(int, self._rows), map(float, self._seconds), strict=True))

    def restore(self, table: dict[int, float]) -> None:
        """Begin with what an earlier run has learnt; its own steps soon outweigh it."""
        for rows, seconds in sorted(table.items()):
            self.observe(num_rows=rows, seconds=seconds)


def _size(num_rows: int) -> int:
    return round(_PER_DOUBLING * float(np.log2(max(1, num_rows))))
