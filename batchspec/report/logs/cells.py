"""Cells of the tables that a report of logs has: values beside their intervals, group by group."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from batchspec.report.layout import ABSENT, printable

__all__ = ["Weighted", "interval_cell", "scopes"]

Weighted = tuple[str, str, Mapping[str, Any]]
"""Name of the requests, name of the weighting, and the measures by name."""


def interval_cell(measure: Mapping[str, Any], form: Callable[[float | None], str]) -> str:
    """Return both ends of a measure's interval.

    Args:
        measure: with ``low`` and ``high``.
        form: gives a number its digits.
    """
    if measure["low"] is None:
        return ABSENT
    return f"{form(measure['low'])} to {form(measure['high'])}"


def scopes(document: Mapping[str, Any]) -> Iterator[Weighted]:
    """Yield all requests, each group, and the macro mean, in both weightings; the name only where it changes.

    Args:
        document: what ``survey_logs`` made, with ``overall``.
    """
    named = {"(all)": document["overall"]} | {printable(name): one for name, one in document["groups"].items()}
    for name, one in named.items():
        yield name, "pooled", one["pooled"]
        yield "", "mean", one["mean_over_requests"]
        if one["estimated"]:
            yield "", "estimated", one["estimated"]
    if document["macro"] is not None:
        yield "(macro)", "pooled", document["macro"]["pooled"]
        yield "", "mean", document["macro"]["mean_over_requests"]
