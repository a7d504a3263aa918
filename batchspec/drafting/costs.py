"""What a step costs by its number of rows, learnt while the steps run.

What else the machine does only ever delays a step, and a delay must not keep drafts from being made: a step that was
taken to be slow is not tried again, and so nobody would find out. Hence few samples of a size are believed only as far
as they are no slower than sizes with more of them let expect, and no size is slower than a larger one.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["StepCosts"]

_PER_DOUBLING = 4  # sizes that are told apart between a number of rows and its double
_MOST_SAMPLES = 8
_REFRESH = 32  # steps after which what is known is put together anew, which takes a tenth of a millisecond
_ENOUGH_SAMPLES = 3  # of a size, to be believed when they are slow
_PLAUSIBLE = 1.1  # times as much for a row as in a smaller step, of which a row never takes less
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
        self._by_rows: NDArray[np.float64] | None = None

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
        if len(size.samples) <= _ENOUGH_SAMPLES or self._num_steps % _REFRESH == 0:
            for number in [n for n, other in self._sizes.items() if other.last_seen < self._num_steps - _MEMORY]:
                del self._sizes[number]
            self._by_rows = None

    def is_known(self, num_rows: int) -> bool:
        """Whether a step of about so many rows, or of more, was seen."""
        return bool(self._sizes) and _number(num_rows) <= max(self._sizes)

    def by_rows(self) -> NDArray[np.float64]:
        """Return what steps take, float64 (``most_rows`` + 1,), by their rows; at least one must have been seen."""
        if self._by_rows is None:
            self._by_rows = _along(np.arange(self.most_rows + 1), *self._believed())
        return self._by_rows

    def _believed(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return rows and seconds of the sizes, float64 (sizes,) each."""
        sizes = [self._sizes[number] for number in sorted(self._sizes)]
        rows, seconds = (np.array(values) for values in zip(*(size.typical() for size in sizes), strict=True))
        enough = np.array([len(size.samples) >= _ENOUGH_SAMPLES for size in sizes])
        if enough.any() and not enough.all():
            plausible = seconds / rows <= _PLAUSIBLE * np.minimum.accumulate(np.where(enough, seconds / rows, np.inf))
            kept = enough | plausible
            rows, seconds, enough = rows[kept], seconds[kept], enough[kept]
        if enough.sum() > 1:
            expected = _along(rows, rows[enough], seconds[enough])
            seconds = np.where(enough, seconds, np.minimum(seconds, expected))
        return rows, np.minimum.accumulate(seconds[::-1])[::-1]

    def table(self) -> dict[int, float]:
        """Return the seconds by rows."""
        points = (self._sizes[number].typical() for number in sorted(self._sizes))
        return {round(rows): seconds for rows, seconds in points}

    def restore(self, table: Mapping[int, float]) -> None:
        """Begin with what an earlier run has learnt; this one's own steps soon outweigh it."""
        for rows, seconds in table.items():
            self.observe(num_rows=rows, seconds=seconds)


def _along(
    num_rows: NDArray[np.int64] | NDArray[np.float64], rows: NDArray[np.float64], seconds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what the lines between the sizes say of some numbers of rows."""
    between = np.interp(num_rows, rows, seconds)
    if len(rows) < 2:
        return between
    slopes = np.maximum(0.0, np.diff(seconds) / np.diff(rows))
    first = min(slopes[0], seconds[0] / rows[0])
    below, above = np.minimum(0.0, num_rows - rows[0]), np.maximum(0.0, num_rows - rows[-1])
    found: NDArray[np.float64] = between + first * below + slopes[-1] * above
    return found


def _number(num_rows: int) -> int:
    return round(_PER_DOUBLING * math.log2(max(1, num_rows)))
