"""The macro mean: every group weighs the same, whatever its size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from batchspec.report.logs.bootstrap import interval
from batchspec.report.logs.measures import RATIOS
from batchspec.report.logs.slices import Slice

__all__ = ["macro_document"]

_WEIGHTINGS = ("pooled", "mean_over_requests")


def macro_document(groups: Mapping[str, Slice]) -> dict[str, Any]:
    """Return the plain mean over the groups of each ratio, in both weightings within a group.

    Args:
        groups: by name, at least one.
    """
    return {weighting: {name: _mean_of(groups, (weighting, name)) for name in RATIOS} for weighting in _WEIGHTINGS}


def _mean_of(groups: Mapping[str, Slice], key: tuple[str, str]) -> dict[str, Any]:
    """Return the mean over the groups that have the ratio; requests are drawn in each group by itself.

    A group of one request cannot vary, which makes the interval too narrow; there is none if all groups are such.
    """
    having = [group for group in groups.values() if group.value(key) is not None]
    values = [value for group in having if (value := group.value(key)) is not None]
    if not values:
        return {"value": None, "low": None, "high": None, "num_groups": 0, "num_fixed_groups": 0}
    num_fixed = sum(group.num_requests(key) < 2 for group in having)
    bounds = interval(np.mean([group.draws[key] for group in having], axis=0)) if num_fixed < len(having) else None
    low, high = bounds or (None, None)
    mean = sum(values) / len(values)
    return {"value": mean, "low": low, "high": high, "num_groups": len(values), "num_fixed_groups": num_fixed}
