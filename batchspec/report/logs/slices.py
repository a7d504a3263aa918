"""The document of some requests: both weightings with intervals, positions, and the spread over requests."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.report.logs.bootstrap import SEED, assign_units, interval, resampled_ratios
from batchspec.report.logs.columns import Columns
from batchspec.report.logs.measures import RATIOS, Measure, histogram_sums, measures, request_ratios

__all__ = ["Slice"]

_SUMS = (
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_decode_steps",
    "num_discarded_tokens",
)
_PERCENTILES = (10, 50, 90)
_SPREAD = ("mean_acceptance_length", "draft_acceptance_rate", "tokens_per_decode_step")
_NUM_BINS = 20

Floats = NDArray[np.float64]
Key = tuple[str, str]


class Slice:
    """Some requests' measures and their resampled values.

    Args:
        columns: what all requests state.
        rows: which of them, at least one.
        index: number of the slice, so that each has random draws of its own.
    """

    def __init__(self, columns: Columns, rows: NDArray[np.intp], *, index: int):
        self._columns, self._rows = columns, rows
        generator = np.random.default_rng((SEED, index))
        units = assign_units(len(rows), generator)
        self._measures = {(one.weighting, one.name): one for one in measures(columns, rows, units)}
        above, below = (
            np.stack([getattr(one, side) for one in self._measures.values()], axis=1)
            for side in ("numerators", "denominators")
        )
        offsets = np.array([one.offset for one in self._measures.values()])
        draws = resampled_ratios(above, below, generator) + offsets
        self.draws: dict[Key, Floats] = dict(zip(self._measures, draws.T, strict=True))
        """(resamples,) values of each measure, by weighting and name."""

    def value(self, key: Key) -> float | None:
        """Return the value of a measure; None where there is none."""
        return self._measures[key].value if key in self._measures else None

    def num_requests(self, key: Key) -> int:
        """Return how many requests a measure is made of."""
        return self._measures[key].num_requests if key in self._measures else 0

    def document(self) -> dict[str, Any]:
        """Return what the report shows of these requests; field names as in ``metrics.speculative_decoding``."""
        steps = self._columns.counts["num_spec_steps"][self._rows]
        is_known = self._columns.known("num_spec_steps")[self._rows]
        return {
            "num_requests": len(self._rows),
            "num_requests_without_step": int((is_known & (steps == 0)).sum()),
            "num_requests_without_step_count": int((~is_known).sum()),
            "pooled": self._weighting("pooled") | self._totals(),
            "mean_over_requests": self._weighting("mean_over_requests"),
            "estimated": self._estimated(),
            "per_position": self._per_position(),
            "distribution": {name: self._spread(name) for name in _SPREAD},
        }

    def _weighting(self, weighting: str) -> dict[str, Any]:
        return {name: self._estimate((weighting, name)) for name in RATIOS}

    def _estimate(self, key: Key) -> dict[str, Any]:
        """Return value, interval and number of requests of a measure."""
        measure = self._measures.get(key)
        if measure is None or measure.value is None:
            return {"value": None, "low": None, "high": None, "num_requests": 0}
        bounds = interval(self.draws[key]) if measure.num_requests > 1 else None
        low, high = bounds or (None, None)
        return {"value": measure.value, "low": low, "high": high, "num_requests": measure.num_requests}

    def _totals(self) -> dict[str, Any]:
        """Return the sums over the requests that state each count, None where none does, and the pooled histogram."""
        totals: dict[str, Any] = {}
        for name in _SUMS:
            is_known = self._columns.known(name)[self._rows]
            counts = self._columns.counts[name][self._rows][is_known]
            totals[name] = int(counts.sum(dtype=np.int64)) if is_known.any() else None
        histogram = histogram_sums(self._columns, self._rows, np.zeros(len(self._rows), dtype=np.intp))
        totals["acceptance_histogram"] = histogram[0].astype(int).tolist() if histogram.size else None
        return totals

    def _estimated(self) -> dict[str, Any]:
        return {name: self._estimate(("estimated", name)) for name in RATIOS if ("estimated", name) in self._measures}

    def _per_position(self) -> list[dict[str, Any]]:
        positions = [one for one in self._measures.values() if one.weighting == "marginal_rate"]
        return [self._position(one) for one in positions]

    def _position(self, marginal: Measure) -> dict[str, Any]:
        conditional = self._measures.get(("conditional_rate", marginal.name))
        return {
            "position": int(marginal.name),
            "num_spec_steps": int(marginal.denominators.sum()),
            "num_drafted": None if conditional is None else int(conditional.denominators.sum()),
            "num_accepted": int(marginal.numerators.sum()),
            "marginal_rate": self._estimate(("marginal_rate", marginal.name)),
            "conditional_rate": self._estimate(("conditional_rate", marginal.name)),
        }

    def _spread(self, name: str) -> dict[str, Any]:
        """Return percentiles of the requests' own ratios, linear between neighbours, and how many fall in each bin."""
        terms = request_ratios(self._columns, self._rows, name)
        if not len(terms):
            return {"num_requests": 0} | {f"p{percent}": None for percent in _PERCENTILES} | {"bins": None}
        shares = np.percentile(terms, _PERCENTILES)
        counts, edges = np.histogram(terms, bins=_NUM_BINS)
        return {
            "num_requests": len(terms),
            **{f"p{percent}": float(share) for percent, share in zip(_PERCENTILES, shares, strict=True)},
            "bins": {"edges": edges.tolist(), "num_requests": counts.tolist()},
        }
