"""Cells of the tables that a report of logs has: values beside their intervals, group by group."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.layout import ABSENT, printable

__all__ = ["Weighted", "interval_cell", "scopes"]

Weighted = tuple[str, str, Mapping[str, Any]]
"""Name of the requests, name of the weighting, and the measures by name."""


def interval_cell(measure: Mapping[str, Any], *, is_share: bool = False) -> str:
    """Return both ends of a measure's interval, a share in per cent."""
    if measure["low"] is None:
        return ABSENT
    low, high = (measure[end] * (100 if is_share else 1) for end in ("low", "high"))
    digits = 2 if is_share else 3
    return f"{low:.{digits}f}\N{EN DASH}{high:.{digits}f}{' %' if is_share else ''}"


def scopes(document: Mapping[str, Any], quantity: str) -> Iterator[Weighted]:
    """Yield all requests, each group, and the macro mean, in both weightings; the name only where it changes.

    Args:
        document: what ``survey_logs`` made, with ``overall``.
        quantity: what the table is about; estimates come where there are any of it.
    """
    groups = ((printable(name), one) for name, one in document["groups"].items())
    for name, one in (("(all)", document["overall"]), *groups):
        yield name, "pooled", one["pooled"]
        yield "", "mean", one["mean_over_requests"]
        if quantity in one["estimated"]:
            yield "", "estimated", one["estimated"]
    if document["macro"] is not None:
        yield "(macro)", "pooled", document["macro"]["pooled"]
        yield "", "mean", document["macro"]["mean_over_requests"]
