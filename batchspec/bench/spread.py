"""Medians and their range, and ratios that are taken pair by pair."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypeVar

from batchspec.bench.interruption import Interruption

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
    contestants: Mapping[str, Callable[[], T]],
    *,
    rounds: int,
    on_round: Callable[[int], None] = lambda _: None,
    interruption: Interruption | None = None,
) -> dict[str, list[T]]:
    """Measure everyone once, then everyone again, the other way round: A B C C B A; return the measurements, by round.

    So nobody is always measured behind the same one, whose traces (memory, heat, threads) may slow down who follows.

    Args:
        contestants: by name, what measures one of them once.
        rounds: how often each is measured.
        on_round: called with the 1-based number of every round that begins.
        interruption: keeps complete rounds when a signal comes; None to let it end everything.

    Raises:
        KeyboardInterrupt: a signal came and no round is kept.
    """

    names = list(contestants)

    def one_round(number: int) -> dict[str, T]:
        on_round(number)
        return {name: contestants[name]() for name in (names if number % 2 else reversed(names))}

    numbered = (partial(one_round, number) for number in range(1, rounds + 1))
    done = [each() for each in numbered] if interruption is None else interruption.rounds(numbered)
    return {name: [found[name] for found in done] for name in contestants}
