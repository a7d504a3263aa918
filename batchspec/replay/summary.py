"""What a set of requests comes to with every setting, with intervals, and which setting is best for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.replay.ratios import SPEEDUP, Sums, drawn_ratios, ratios
from batchspec.report.logs.bootstrap import interval
from batchspec.report.positions import per_position_document, survivors

__all__ = ["Slice", "summarise"]

_MEANS = ("mean_acceptance_length", "draft_acceptance_rate", "tokens_per_decode_step")
_SUMS = ("num_spec_steps", "num_accepted_draft_tokens", "num_draft_tokens", "num_decode_steps")


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Some requests.

    Attributes:
        each: their sums by request, (requests, …); at least one request.
        histograms: int64 (2, settings, most + 1), see ``Tallies``.
        methods: of the settings.
        lengths: the most draft tokens of each setting.
    """

    each: Sums
    histograms: NDArray[np.int64]
    methods: Sequence[str]
    lengths: Sequence[int]

    @cached_property
    def total(self) -> Sums:
        """The sums over all requests, (1, …)."""
        return self.each.by_unit(np.zeros(len(self.each.counts), dtype=np.intp))


def summarise(requests: Slice) -> dict[str, Any]:
    """Return ``num_requests``, ``cells`` (one for each setting) and ``best``.

    Intervals are None for a single request, which says nothing about others.
    """
    draws = drawn_ratios(requests.each) if len(requests.each.counts) > 1 else None
    pooled, each = ratios(requests.total), ratios(requests.each)
    num_settings = len(requests.lengths)
    return {
        "num_requests": len(requests.each.counts),
        "cells": [_cell(requests, setting, pooled=pooled, each=each, draws=draws) for setting in range(num_settings)],
        "best": _best(requests, pooled, draws),
    }


def _cell(
    requests: Slice,
    setting: int,
    *,
    pooled: Mapping[str, NDArray[np.float64]],
    each: Mapping[str, NDArray[np.float64]],
    draws: Mapping[str, NDArray[np.float64]] | None,
) -> dict[str, Any]:
    total = requests.total
    k = requests.lengths[setting]
    accepted, drafted = requests.histograms[:, setting, : k + 1].tolist()
    sums = {name: int(total[name][0, setting]) for name in _SUMS}
    discarded = sums["num_decode_steps"] + sums["num_accepted_draft_tokens"] - int(total.num_later_tokens[0])
    has_step = requests.each["num_spec_steps"][:, setting] > 0
    return {
        "method": requests.methods[setting],
        "num_spec_tokens": k,
        "pooled": {
            **{name: _number(values[0, setting]) for name, values in pooled.items()},
            "acceptance_histogram": accepted,
            **sums,
            "num_discarded_tokens": discarded,
            "num_undecided_tokens": int(total["num_undecided_tokens"][0, setting]),
        },
        "intervals": {name: None if draws is None else interval(draws[name][:, setting]) for name in pooled},
        "mean_over_requests": {
            **{name: _mean(each[name][has_step, setting]) for name in _MEANS},
            "num_requests": int(has_step.sum()),
            "num_requests_without_step": int((~has_step).sum()),
        },
        "per_position": per_position_document(
            num_spec_steps=sums["num_spec_steps"], num_accepted=survivors(accepted), num_drafted=survivors(drafted)
        ),
    }


def _best(
    requests: Slice, pooled: Mapping[str, NDArray[np.float64]], draws: Mapping[str, NDArray[np.float64]] | None
) -> dict[str, Any] | None:
    """Return the best setting and how it stands to the best one of the other methods, or to the next best one.

    The criterion is the predicted speed-up, or the tokens per decode step where there is none; of settings as good,
    the one that drafts least. None where no setting has a value.
    """
    criterion = SPEEDUP if SPEEDUP in pooled else "tokens_per_decode_step"
    values, drafted = pooled[criterion][0], requests.total["num_draft_tokens"][0]
    ranked = sorted(
        (setting for setting in range(len(values)) if not np.isnan(values[setting])),
        key=lambda setting: (-values[setting], drafted[setting]),
    )
    if not ranked:
        return None
    first, *others = ranked
    rivals = [setting for setting in others if requests.methods[setting] != requests.methods[first]]
    rival = next(iter(rivals or others), None)
    drawn = None if draws is None else draws[criterion]
    return {
        "criterion": criterion,
        **_named(requests, first),
        "value": _number(values[first]),
        "interval": None if drawn is None else interval(drawn[:, first]),
        "share_of_draws": None if drawn is None else _share_best(drawn, first),
        "next": None
        if rival is None
        else {
            **_named(requests, rival),
            "difference": _number(values[first] - values[rival]),
            "interval": None if drawn is None else interval(drawn[:, first] - drawn[:, rival]),
        },
    }


def _share_best(drawn: NDArray[np.float64], setting: int) -> float:
    """Return in how many of the draws no other setting is better."""
    known = drawn[~np.isnan(drawn).any(axis=1)]
    return float((known[:, setting] >= known.max(axis=1)).mean()) if len(known) else 0.0


def _named(requests: Slice, setting: int) -> dict[str, Any]:
    return {"method": requests.methods[setting], "num_spec_tokens": requests.lengths[setting]}


def _number(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return fsum(known) / len(known) if len(known) else None
