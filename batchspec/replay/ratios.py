"""The ratios that a replay tells, by request, over all of them, or over draws of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.replay.stepping import COLUMNS
from batchspec.report.logs.bootstrap import SEED, assign_units, resampled_ratios

__all__ = ["SPEEDUP", "Sums", "drawn_ratios", "ratios"]

SPEEDUP = "predicted_speedup"

Numbers = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Sums:
    """What is added up for each setting, by request.

    Attributes:
        counts: (n, settings, len(COLUMNS)).
        num_later_tokens: (n,), output tokens but the first of each output.
        seconds: (n, settings + 1), predicted, without drafts in the last column; None where they are not.
    """

    counts: Numbers
    num_later_tokens: Numbers
    seconds: Numbers | None = None

    def __getitem__(self, name: str) -> Numbers:
        """Return a quantity, (n, settings)."""
        if name in COLUMNS:
            return self.counts[..., COLUMNS.index(name)]
        if name == "num_later_tokens":
            return np.broadcast_to(self.num_later_tokens[:, None], self.counts.shape[:2])
        seconds = np.zeros((len(self.counts), 1)) if self.seconds is None else self.seconds
        own, plain = seconds[:, :-1], seconds[:, -1:]
        return own if name == "seconds" else np.broadcast_to(plain, own.shape)

    def of(self, members: NDArray[np.bool_]) -> "Sums":
        """Return those of some of the requests, bool (n,)."""
        return Sums(
            counts=self.counts[members],
            num_later_tokens=self.num_later_tokens[members],
            seconds=None if self.seconds is None else self.seconds[members],
        )

    def by_unit(self, units: NDArray[np.intp]) -> "Sums":
        """Return the sums over the requests of each unit, float64 (units, …).

        Args:
            units: int (n,), of each request, all from 0 on.
        """
        return Sums(
            counts=_added(self.counts, units),
            num_later_tokens=_added(self.num_later_tokens, units),
            seconds=None if self.seconds is None else _added(self.seconds, units),
        )


def _added(values: Numbers, units: NDArray[np.intp]) -> Numbers:
    columns = values.reshape(len(values), -1).T
    sums = [np.bincount(units, weights=column) for column in columns]
    return np.stack(sums, axis=1).reshape(-1, *values.shape[1:])


@dataclass(frozen=True, kw_only=True)
class _Ratio:
    """Offset and sign times a quotient of two quantities."""

    above: str
    below: str
    offset: float = 0.0
    sign: float = 1.0

    def of(self, quotient: Numbers) -> Numbers:
        return self.offset + self.sign * quotient


_ALWAYS = {
    "mean_acceptance_length": _Ratio(above="num_accepted_draft_tokens", below="num_spec_steps", offset=1.0),
    "draft_acceptance_rate": _Ratio(above="num_accepted_draft_tokens", below="num_draft_tokens"),
    "tokens_per_decode_step": _Ratio(above="num_later_tokens", below="num_decode_steps"),
    "steps_saved": _Ratio(above="num_decode_steps", below="num_later_tokens", offset=1.0, sign=-1.0),
}
_WITH_TIMES = {SPEEDUP: _Ratio(above="plain_seconds", below="seconds")}


def ratios(sums: Sums) -> Mapping[str, Numbers]:
    """Return every ratio by name, float64 (n, settings); NaN where there is nothing to divide by."""
    return {name: ratio.of(_quotient(sums[ratio.above], sums[ratio.below])) for name, ratio in _known(sums).items()}


def drawn_ratios(sums: Sums) -> Mapping[str, Numbers]:
    """Return every ratio of draws of the requests with replacement, float64 (draws, settings).

    The paired bootstrap: every draw is of the same requests for all settings, so that what requests have in common
    cancels out of differences.
    """
    generator = np.random.default_rng(SEED)
    of_units = sums.by_unit(assign_units(len(sums.counts), generator))
    known = _known(sums)
    above = np.concatenate([of_units[ratio.above] for ratio in known.values()], axis=1)
    below = np.concatenate([of_units[ratio.below] for ratio in known.values()], axis=1)
    drawn = np.split(resampled_ratios(above, below, generator), len(known), axis=1)
    return {name: ratio.of(quotient) for (name, ratio), quotient in zip(known.items(), drawn, strict=True)}


def _known(sums: Sums) -> Mapping[str, _Ratio]:
    return _ALWAYS if sums.seconds is None else _ALWAYS | _WITH_TIMES


def _quotient(above: Numbers, below: Numbers) -> Numbers:
    quotient = np.full(above.shape, np.nan)
    np.divide(above, below, out=quotient, where=below != 0)
    return quotient
