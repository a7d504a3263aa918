"""From values to places on a picture, with ticks at round numbers."""

import math
from dataclasses import dataclass

__all__ = ["Scale", "round_ticks"]

_NOTHING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A linear scale.

    Attributes:
        low: value at ``start``.
        high: value at ``end``, another than ``low``.
        start: place in pixels; may be behind ``end``, as upwards in a picture.
        end: place in pixels.
    """

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return where a value stands, in pixels."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def round_ticks(low: float, high: float, *, most: int = 6) -> list[float]:
    """Return round numbers 1, 2 or 5 times a power of ten apart, that enclose both ends.

    Args:
        low: smallest value to show.
        high: largest value to show; may be equal.
        most: about so many ticks.
    """
    size = max(abs(low), abs(high))
    span = high - low
    if span <= _NOTHING * max(size, 1.0):
        span = size if size > _NOTHING else 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, max(last, first + 1) + 1)]
