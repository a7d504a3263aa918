"""What a step costs by its number of rows, learnt while the steps run."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["StepCosts"]

_PER_DOUBLING = 2  # sizes that are told apart between a number of rows and its double
_MOST_SAMPLES = 8
_MOST_GROWTH = 1.5  # of a step beyond the largest that was seen
_MEMORY = 500  # steps after which a size that did not come again is forgotten: machines get busy, contexts grow


@dataclass(kw_only=True)
class _Size:
    """The latest steps of about one number of rows."""

    samples: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_MOST_SAMPLES))
    last_seen: int = 0

    def typical(self) -> tuple[float, float]:
        """Return the mean of the rows, and the lower quartile of the seconds: what else happens only ever delays."""
        seconds = sorted(seconds for _, seconds in self.samples)
        return sum(rows for rows, _ in self.samples) / len(seconds), seconds[len(seconds) // 4]


class StepCosts:
    """Seconds of steps by their rows: on lines between sizes that were seen, and on the first and the last one beyond.

    Steps much larger than any that was seen are not to be tried, so that a step that does not pay costs little.
    """

    def __init__(self) -> None:
        self._sizes: dict[int, _Size] = {}
        self._num_steps = 0
        self._curve: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    @property
    def most_rows(self) -> int:
        """The largest step to try."""
        largest = max((rows for size in self._sizes.values() for rows, _ in size.samples), default=0)
        return max(largest + 1, int(_MOST_GROWTH * largest))

    def observe(self, *, num_rows: int, seconds: float) -> None:
        """Note what a step took."""
        self._num_steps += 1
        size = self._sizes.setdefault(_number(num_rows), _Size())
        size.samples.append((num_rows, seconds))
        size.last_seen = self._num_steps
        if len(size.samples) < _MOST_SAMPLES or self._num_steps % _MOST_SAMPLES == 0:
            for number in [n for n, other in self._sizes.items() if other.last_seen < self._num_steps - _MEMORY]:
                del self._sizes[number]
            self._curve = None

    def is_known(self, num_rows: int) -> bool:
        """Whether a step of about so many rows was seen."""
        return _number(num_rows) in self._sizes

    def seconds(self, num_rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what steps take, float64 (n,), by their rows, int64 (n,); at least one step must have been seen."""
        if self._curve is None:
            points = [self._sizes[number].typical() for number in sorted(self._sizes)]
            self._curve = np.array([rows for rows, _ in points]), np.array([seconds for _, seconds in points])
        rows, seconds = self._curve
        between = np.interp(num_rows, rows, seconds)
        if len(rows) < 2:
            return between
        slopes = np.maximum(0.0, np.diff(seconds) / np.diff(rows))
        first = min(slopes[0], seconds[0] / rows[0])
        below, above = np.minimum(0.0, num_rows - rows[0]), np.maximum(0.0, num_rows - rows[-1])
        found: NDArray[np.float64] = between + first * below + slopes[-1] * above
        return found

    def table(self) -> dict[int, float]:
        """Return the seconds by rows."""
        points = (self._sizes[number].typical() for number in sorted(self._sizes))
        return {round(rows): seconds for rows, seconds in points}

    def restore(self, table: Mapping[int, float]) -> None:
        """Begin with what an earlier run has learnt; this one's own steps soon outweigh it."""
        for rows, seconds in table.items():
            self.observe(num_rows=rows, seconds=seconds)


def _number(num_rows: int) -> int:
    return round(_PER_DOUBLING * float(np.log2(max(1, num_rows))))
