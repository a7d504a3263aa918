"""Medians and their range, and ratios that are taken pair by pair."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

__all__ = ["Spread", "alternate", "ratios", "spread"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Several measurements of one quantity, in its unit: their median and the range they lie in."""

    median: float
    min: float
    max: float


def spread(values: Sequence[float]) -> Spread:
    """Return median, least and greatest of at least one value."""
    return Spread(median=median(values), min=min(values), max=max(values))


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> Spread:
    """Return the spread of the ratios of what was measured in the same round.

    What slows down a whole round, such as other work on the machine, cancels out of its ratio.
    """
    return spread([above / below for above, below in zip(numerators, denominators, strict=True)])


def alternate(
    contestants: Mapping[str, Callable[[], T]], *, rounds: int, on_round: Callable[[int], None] = lambda _: None
) -> dict[str, list[T]]:
    """Measure everyone once, then everyone again: A B C A B C; return the measurements of each, by round.

    Args:
        contestants: by name, what measures one of them once.
        rounds: how often each is measured.
        on_round: called with the 1-based number of every round that begins.
    """
    results: dict[str, list[T]] = {name: [] for name in contestants}
    for number in range(1, rounds + 1):
        on_round(number)
        for name, measure in contestants.items():
            results[name].append(measure())
    return results
