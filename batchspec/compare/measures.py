"""What is compared: ratios of sums over the pairs, each with its numerator and denominator in every pair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchspec.compare.sides import Numbers

__all__ = ["Measure", "Pair", "all_measures"]

Ratio = tuple[float, float]
Ratios = list[tuple[Ratio, Ratio] | None]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One request in both runs, the first run first.

    Attributes:
        custom_id: of the request.
        numbers: what the responses state of their drafts.
        first_token_ms: milliseconds to the first token; None where one run does not tell them.
        gaps: milliseconds from the first to the last token, and the number of gaps between tokens; likewise.
        is_same_text: whether the texts are equal; None where one run has none.
    """

    custom_id: str
    numbers: tuple[Numbers, Numbers]
    first_token_ms: tuple[float, float] | None = None
    gaps: tuple[Ratio, Ratio] | None = None
    is_same_text: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number of both runs.

    Attributes:
        name: key, as reports name it.
        weighting: ``pooled``, a ratio of sums; or ``mean_over_requests``, of those that have a ratio of their own.
        detail: which position, category or part of the pairs; None for all.
        offset: added to the ratio.
        numerators: (2, pairs), zero where a pair does not take part.
        denominators: (2, pairs), likewise.
        num_pairs: pairs that take part.
    """

    name: str
    weighting: str = "pooled"
    detail: str | None = None
    offset: float = 0.0
    numerators: NDArray[np.float64]
    denominators: NDArray[np.float64]
    num_pairs: int

    @property
    def values(self) -> tuple[float | None, float | None]:
        """The measure in both runs, None where there is nothing to divide by."""
        tops, bottoms = self.numerators.sum(axis=1), self.denominators.sum(axis=1)
        first, second = (
            self.offset + float(top / bottom) if bottom else None for top, bottom in zip(tops, bottoms, strict=True)
        )
        return first, second


def all_measures(pairs: Sequence[Pair]) -> Iterator[Measure]:
    """Yield what both runs tell for at least one request; a pair that one run does not tell takes no part."""
    lengths = [_both(pair, "accepted", "steps") for pair in pairs]
    rates = [_both(pair, "accepted", "drafted") for pair in pairs]
    emitted = [_both(pair, "emitted", "decode_steps") for pair in pairs]
    yield from _measure("mean_acceptance_length", lengths, offset=1.0)
    yield from _measure("mean_acceptance_length", _means(lengths, offset=1.0), weighting="mean_over_requests")
    yield from _measure("draft_acceptance_rate", rates)
    yield from _measure("draft_acceptance_rate", _means(rates), weighting="mean_over_requests")
    yield from _measure("tokens_per_decode_step", emitted)
    yield from _measure("tokens_per_decode_step", _means(emitted), weighting="mean_over_requests")
    same = [pair.is_same_text for pair in pairs]
    if True in same and False in same:
        chosen = [ratio if is_same else None for ratio, is_same in zip(lengths, same, strict=True)]
        yield from _measure("mean_acceptance_length", chosen, offset=1.0, detail="equal texts")
    yield from _by_category(pairs, lengths)
    for position in range(_num_positions(pairs)):
        yield from _measure("marginal_rate", [_at(pair, position) for pair in pairs], detail=str(position))
    first_tokens = [
        None if pair.first_token_ms is None else ((pair.first_token_ms[0], 1.0), (pair.first_token_ms[1], 1.0))
        for pair in pairs
    ]
    yield from _measure("ms_per_output_token", [pair.gaps for pair in pairs])
    yield from _measure("time_to_first_token_ms", first_tokens, weighting="mean_over_requests")


def _measure(
    name: str, ratios: Ratios, *, weighting: str = "pooled", offset: float = 0.0, detail: str | None = None
) -> Iterator[Measure]:
    """Yield the measure, or nothing when no pair takes part."""
    num_pairs = sum(ratio is not None for ratio in ratios)
    if num_pairs:
        table = np.array([ratio or ((0.0, 0.0), (0.0, 0.0)) for ratio in ratios], dtype=np.float64)
        yield Measure(
            name=name,
            weighting=weighting,
            detail=detail,
            offset=offset,
            numerators=table[:, :, 0].T,
            denominators=table[:, :, 1].T,
            num_pairs=num_pairs,
        )


def _both(pair: Pair, top: str, bottom: str) -> tuple[Ratio, Ratio] | None:
    """Return numerator and denominator in both runs, None when one of the four is not known."""
    first, second = ((getattr(one, top), getattr(one, bottom)) for one in pair.numbers)
    return None if None in (*first, *second) else (first, second)


def _means(ratios: Ratios, *, offset: float = 0.0) -> Ratios:
    """Return every request's own ratio over one; a request without a denominator weighs nothing in its run."""

    def own(ratio: Ratio) -> Ratio:
        top, bottom = ratio
        return (offset + top / bottom, 1.0) if bottom else (0.0, 0.0)

    return [None if pair is None else (own(pair[0]), own(pair[1])) for pair in ratios]


def _by_category(pairs: Sequence[Pair], lengths: Ratios) -> Iterator[Measure]:
    """Yield the acceptance length of every category, as the first run names them."""
    categories = [pair.numbers[0].category for pair in pairs]
    names = sorted({name for name in categories if name is not None})
    for name in names:
        chosen = [ratio if category == name else None for ratio, category in zip(lengths, categories, strict=True)]
        yield from _measure("mean_acceptance_length", chosen, offset=1.0, detail=f"category {name}")


def _num_positions(pairs: Sequence[Pair]) -> int:
    """Return how many positions of a draft both runs have."""
    longest = [max((len(pair.numbers[run].accepted_at or ()) for pair in pairs), default=0) for run in (0, 1)]
    return min(longest)


def _at(pair: Pair, position: int) -> tuple[Ratio, Ratio] | None:
    """Return the steps that accepted the token at a position, over all steps."""
    first, second = (_accepted_at(one, position) for one in pair.numbers)
    return None if first is None or second is None else (first, second)


def _accepted_at(numbers: Numbers, position: int) -> Ratio | None:
    """Return one request's part of a marginal rate; a histogram may be shorter where nothing got so far."""
    if numbers.accepted_at is None or numbers.steps is None:
        return None
    return (numbers.accepted_at[position] if position < len(numbers.accepted_at) else 0), numbers.steps
