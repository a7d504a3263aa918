"""What is compared: ratios of sums over the pairs, each with its numerator and denominator in every pair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from batchspec.compare.sides import Numbers

__all__ = ["Key", "Measure", "Pair", "all_measures", "category_detail", "is_minor"]

Ratio = tuple[float, float]
Key = tuple[str, str, str | None]
"""Name, weighting and detail of a measure."""

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
        places: (n,), which pairs take part.
        numerators: (2, n), of these in both runs.
        denominators: (2, n), likewise.
    """

    name: str
    weighting: str = "pooled"
    detail: str | None = None
    offset: float = 0.0
    places: NDArray[np.intp]
    numerators: NDArray[np.float64]
    denominators: NDArray[np.float64]

    @property
    def key(self) -> Key:
        """What tells it from the others."""
        return self.name, self.weighting, self.detail

    @property
    def num_pairs(self) -> int:
        """Pairs that take part."""
        return len(self.places)

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
    ratios = [*_ratios(pairs, lengths)]
    positions = [
        measure
        for position in range(_num_positions(pairs))
        for measure in _measure("marginal_rate", [_at(pair, position) for pair in pairs], detail=str(position))
    ]
    yield from ratios
    same = [pair.is_same_text for pair in pairs]
    if True in same and False in same:
        chosen = [ratio if is_same else None for ratio, is_same in zip(lengths, same, strict=True)]
        yield from _measure("mean_acceptance_length", chosen, offset=1.0, detail="equal texts")
    yield from positions
    yield from _by_category(pairs, [*ratios, *positions])
    first_tokens = [
        None if pair.first_token_ms is None else ((pair.first_token_ms[0], 1.0), (pair.first_token_ms[1], 1.0))
        for pair in pairs
    ]
    yield from _measure("ms_per_output_token", [pair.gaps for pair in pairs])
    yield from _measure("time_to_first_token_ms", first_tokens, weighting="mean_over_requests")


def _ratios(pairs: Sequence[Pair], lengths: Ratios) -> Iterator[Measure]:
    rates = [_both(pair, "accepted", "drafted") for pair in pairs]
    emitted = [_both(pair, "emitted", "decode_steps") for pair in pairs]
    yield from _measure("mean_acceptance_length", lengths, offset=1.0)
    yield from _measure("mean_acceptance_length", _means(lengths, offset=1.0), weighting="mean_over_requests")
    yield from _measure("draft_acceptance_rate", rates)
    yield from _measure("draft_acceptance_rate", _means(rates), weighting="mean_over_requests")
    yield from _measure("tokens_per_decode_step", emitted)
    yield from _measure("tokens_per_decode_step", _means(emitted), weighting="mean_over_requests")


def _measure(
    name: str, ratios: Ratios, *, weighting: str = "pooled", offset: float = 0.0, detail: str | None = None
) -> Iterator[Measure]:
    """Yield the measure, or nothing when no pair takes part."""
    places = [place for place, ratio in enumerate(ratios) if ratio is not None]
    if places:
        table = np.array([ratios[place] for place in places], dtype=np.float64)
        yield Measure(
            name=name,
            weighting=weighting,
            detail=detail,
            offset=offset,
            places=np.array(places),
            numerators=table[:, :, 0].T,
            denominators=table[:, :, 1].T,
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


def _by_category(pairs: Sequence[Pair], measures: Sequence[Measure]) -> Iterator[Measure]:
    """Yield the measures over the pairs of every category, as the first run names them."""
    names = [pair.numbers[0].category for pair in pairs]
    known = sorted({name for name in names if name is not None})
    number_of = {name: number for number, name in enumerate(known)}
    numbers = np.array([-1 if name is None else number_of[name] for name in names])
    for name, number in number_of.items():
        for measure in measures:
            chosen = numbers[measure.places] == number
            if chosen.any():
                yield replace(
                    measure,
                    detail=category_detail(name, measure.detail),
                    places=measure.places[chosen],
                    numerators=measure.numerators[:, chosen],
                    denominators=measure.denominators[:, chosen],
                )


def is_minor(measure: Measure) -> bool:
    """Return whether it is one of the many of a category, other than its acceptance length."""
    is_of_category = measure.detail is not None and measure.detail.startswith(category_detail("", None))
    return is_of_category and (measure.name, measure.weighting) != ("mean_acceptance_length", "pooled")


def category_detail(name: str, position: str | None) -> str:
    """Return the detail of a measure over one category, and at one position if one is given."""
    return f"category {name}" if position is None else f"category {name}, position {position}"


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
