"""The parts of a comparison as JSON."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from batchspec.compare.bootstrap import Intervals
from batchspec.compare.measures import Measure
from batchspec.compare.pairing import PairedRuns
from batchspec.compare.sides import Side

__all__ = ["measure_document", "pairs_document", "run_document", "texts_document"]

_MAX_NAMED = 8


def run_document(side: Side) -> dict[str, Any]:
    """Return what became of the requests of one run."""
    return {
        "path": side.path,
        "num_served": len(side.requests),
        "num_failed": len(side.failed) + len(side.repeated),
        "num_left_out": side.num_left_out,
        "left_out": side.sentences,
        "num_without_id": side.num_without_id,
        "num_positions": max((len(one.accepted_at or ()) for one in side.requests.values()), default=0),
    }


def pairs_document(a: Side, b: Side, *, num_pairs: int) -> dict[str, Any]:
    """Return how many requests both runs served, and which of them only one did."""
    failed = {name for side, other in ((a, b), (b, a)) for name in side.failed if name in other.requests}
    both_failed = a.failed.keys() & b.failed.keys()
    in_a, in_b = (side.requests.keys() | side.failed.keys() | side.left_out for side in (a, b))
    return {
        "num_pairs": num_pairs,
        "failed_in_one": _named(failed),
        "failed_in_both": _named(both_failed),
        "left_out": _named(a.left_out | b.left_out),
        "repeated": _named(a.repeated | b.repeated),
        "only_in_a": _named(in_a - in_b),
        "only_in_b": _named(in_b - in_a),
    }


def _named(names: Iterable[str]) -> dict[str, Any]:
    listed = sorted(names)
    return {"num_requests": len(listed), "named": listed[:_MAX_NAMED]}


def measure_document(measure: Measure, intervals: Intervals) -> dict[str, Any]:
    """Return one measure in both runs, the difference B less A, the ratio B over A, and the intervals of these."""
    a, b = measure.values
    return {
        "name": measure.name,
        "weighting": measure.weighting,
        "detail": measure.detail,
        "a": _estimate(a, intervals.runs[0]),
        "b": _estimate(b, intervals.runs[1]),
        "difference": _estimate(None if a is None or b is None else b - a, intervals.difference),
        "ratio": _estimate(b / a if a and b is not None else None, intervals.ratio),
        "num_pairs": measure.num_pairs,
    }


def _estimate(value: float | None, interval: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = (None, None) if interval is None or value is None else interval
    return {"value": value, "low": low, "high": high}


def texts_document(paired: PairedRuns) -> dict[str, Any]:
    """Return how many answers are equal, and where the others part."""
    found = paired.divergences
    differing = [one for one in found.values() if one.character is not None]
    return {
        "num_compared": paired.num_compared,
        "num_equal": paired.num_compared - len(differing),
        "num_different": len(differing),
        "num_cut": sum(one.is_cut for one in differing),
        "num_equal_of_other_tokens": len(found) - len(differing),
        "first_character": _spread([one.character for one in differing if one.character is not None]),
        "first_token": _spread([one.token for one in differing if one.token is not None]),
        "divergences": [{"custom_id": name, **one.document()} for name, one in found.items()],
    }


def _spread(values: Sequence[int]) -> dict[str, float] | None:
    """Return the smallest, the median and the largest value, None when there is none."""
    return {"min": min(values), "median": median(values), "max": max(values)} if values else None
