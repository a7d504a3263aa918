"""Every ratio of a report as sums over units of requests: what the value and its interval are made of."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchspec.ingest.numbers import MAX_DRAFT
from batchspec.report.logs.columns import Columns
from batchspec.report.ratios import ratio

__all__ = ["RATIOS", "Measure", "histogram_sums", "measures", "request_ratios"]

RATIOS = (
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "tokens_per_decode_step",
    "completion_tokens_per_step",
)
_OFFSETS = {"mean_acceptance_length": 1}

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One ratio.

    Attributes:
        weighting: ``pooled``, ``mean_over_requests``, ``marginal_rate``, ``conditional_rate``, or ``estimated`` for a
            pooled ratio of the requests that state an estimate.
        name: the ratio's name, or the position in the draft.
        value: None where there is nothing to divide by.
        offset: what is added to the quotient.
        num_requests: requests that it is made of.
        numerators: (units,) sums over the requests of each unit.
        denominators: (units,) the same.
    """

    weighting: str
    name: str
    value: float | None
    offset: int
    num_requests: int
    numerators: Floats
    denominators: Floats


def measures(columns: Columns, rows: Rows, units: Rows) -> list[Measure]:
    """Return every ratio that some requests allow, and those that they do not with a value of None.

    Args:
        columns: what the requests state.
        rows: which requests.
        units: (rows,) the unit of each.
    """
    return [*_ratios(columns, rows, units), *_positions(columns, rows, units)]


def _ratios(columns: Columns, rows: Rows, units: Rows) -> Iterator[Measure]:
    """Yield the four ratios in both weightings, and what estimates give apart from them."""
    has_step = _has_step(columns, rows)
    for name in RATIOS:
        above, below, is_known, is_estimated = _terms(name, columns, rows)
        yield _pooled("pooled", name, above, below, is_known, units)
        yield _mean(name, above, below, is_known & has_step & (below > 0), units)
        if is_estimated is not None and is_estimated.any():
            yield _pooled("estimated", name, above, below, is_estimated, units)


def _terms(name: str, columns: Columns, rows: Rows) -> tuple[Rows, Rows, Mask, Mask | None]:
    """Return numerator, denominator, which requests know both, and which have an estimate among them."""

    def count(field: str) -> Rows:
        return columns.counts[field][rows].astype(np.intp)

    if name == "tokens_per_decode_step":
        output = count("completion_tokens")
        is_known = columns.known("num_decode_steps")[rows] & (output >= 0)
        return output - columns.num_turns[rows], count("num_decode_steps"), is_known, None
    if name == "completion_tokens_per_step":
        output, steps = count("completion_tokens"), count("num_spec_steps")
        is_known = columns.known("num_spec_steps")[rows] & (output >= 0) & (steps > 0)
        return output, steps, is_known, None
    fields = ("num_accepted_draft_tokens", "num_spec_steps" if name in _OFFSETS else "num_draft_tokens")
    above, below = map(count, fields)
    is_told = (above >= 0) & (below >= 0)
    is_guessed = columns.is_estimated(fields[0])[rows] | columns.is_estimated(fields[1])[rows]
    return above, below, is_told & ~is_guessed, is_told & is_guessed


def _pooled(weighting: str, name: str, above: Rows, below: Rows, is_known: Mask, units: Rows) -> Measure:
    above, below, offset = above * is_known, below * is_known, _OFFSETS.get(name, 0)
    quotient = ratio(int(above.sum()), int(below.sum()))
    return Measure(
        weighting=weighting,
        name=name,
        value=None if quotient is None else offset + quotient,
        offset=offset,
        num_requests=int(is_known.sum()),
        numerators=_by_unit(above, units),
        denominators=_by_unit(below, units),
    )


def _mean(name: str, above: Rows, below: Rows, is_known: Mask, units: Rows) -> Measure:
    terms, number = _quotients(name, above, below, is_known), int(is_known.sum())
    return Measure(
        weighting="mean_over_requests",
        name=name,
        value=float(terms.sum()) / number if number else None,
        offset=0,
        num_requests=number,
        numerators=_by_unit(terms, units),
        denominators=_by_unit(is_known, units),
    )


def _quotients(name: str, above: Rows, below: Rows, is_known: Mask) -> Floats:
    """Return the requests' own ratios, 0 where one is not known."""
    terms = np.divide(above, below, out=np.zeros(len(above)), where=is_known)
    terms += _OFFSETS.get(name, 0) * is_known
    return terms


def request_ratios(columns: Columns, rows: Rows, name: str) -> Floats:
    """Return the ratio of each request that has a step and knows it, in the order of the requests."""
    above, below, is_known, _ = _terms(name, columns, rows)
    is_known = is_known & _has_step(columns, rows) & (below > 0)
    return _quotients(name, above, below, is_known)[is_known]


def _has_step(columns: Columns, rows: Rows) -> Mask:
    return columns.known("num_spec_steps")[rows] & (columns.counts["num_spec_steps"][rows] > 0)


def _by_unit(values: NDArray[np.generic], units: Rows) -> Floats:
    """Return the sums over each unit's requests."""
    return np.bincount(units, weights=values.astype(np.float64)).astype(np.float64, copy=False)


def histogram_sums(columns: Columns, rows: Rows, units: Rows) -> Floats:
    """Return (units, k + 1) acceptance histograms, k being the longest draft of the requests; no column without any."""
    return _ragged_sums(*columns.histogram.take(rows), units=units)


def _ragged_sums(values: NDArray[np.int32], owners: Rows, indices: Rows, *, units: Rows) -> Floats:
    """Return (units, longest list) sums of lists."""
    width, num_units = int(indices.max(initial=-1)) + 1, int(units.max(initial=-1)) + 1
    cells = units[owners] * width + indices
    sums = np.bincount(cells, weights=values, minlength=num_units * width).astype(np.float64, copy=False)
    return sums.reshape(num_units, width)


def _positions(columns: Columns, rows: Rows, units: Rows) -> Iterator[Measure]:
    """Yield marginal and conditional rate of each position, over the requests that have a histogram."""
    told = columns.histogram.lengths[rows] > 0
    rows, units, num_units = rows[told], units[told], int(units.max(initial=-1)) + 1
    histogram = histogram_sums(columns, rows, units)
    histogram = np.pad(histogram, ((0, num_units - len(histogram)), (0, 0)))
    accepted = np.cumsum(histogram[:, ::-1], axis=1)[:, ::-1]  # at j: steps that accepted j or more
    values, owners, indices = columns.drafted.take(rows)
    drafted = _ragged_sums(values, owners, indices, units=units)
    drafted = np.pad(drafted, ((0, num_units - len(drafted)), (0, max(0, accepted.shape[1] - drafted.shape[1]))))
    is_open = (columns.counts["num_spec_steps"][rows] > 0) & (columns.knows_drafted[rows] == 0)
    known = int(columns.drafted.lengths[rows][is_open].min(initial=MAX_DRAFT))
    for position in range(accepted.shape[1] - 1):
        above = accepted[:, position + 1]
        yield _rate("marginal_rate", position, above, accepted[:, 0], num_requests=len(rows))
        if position < known:
            yield _rate("conditional_rate", position, above, drafted[:, position], num_requests=len(rows))


def _rate(weighting: str, position: int, above: Floats, below: Floats, *, num_requests: int) -> Measure:
    return Measure(
        weighting=weighting,
        name=str(position),
        value=ratio(int(above.sum()), int(below.sum())),
        offset=0,
        num_requests=num_requests,
        numerators=above,
        denominators=below,
    )
