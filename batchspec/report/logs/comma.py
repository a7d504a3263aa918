"""A report of logs as comma-separated values for those who paste: one line for each number, with its interval."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.plain_text import printable
from batchspec.report.logs.measures import RATIOS

__all__ = ["log_csv"]

_HEADER = ("requests", "weighting", "quantity", "value", "low", "high", "num_requests")
_SUMS = (
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_decode_steps",
    "num_discarded_tokens",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

_Line = tuple[Any, ...]


def log_csv(document: Mapping[str, Any]) -> str:
    """Return the numbers in long form; what is not known is an empty cell.

    A name that a spreadsheet would take for a formula gets an apostrophe before it.

    Args:
        document: what ``survey_logs`` made.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows(_lines(document))
    return out.getvalue()


def _lines(document: Mapping[str, Any]) -> Iterator[_Line]:
    for name, number in document["rows"].items():
        if isinstance(number, int):
            yield "(rows)", "", name, number, None, None, None
    if document["overall"] is None:
        return
    yield from _slice("(all)", document["overall"])
    for name, one in document["groups"].items():
        yield from _slice(_cell(name), one)
    for weighting, measures in (document["macro"] or {}).items():
        for name in RATIOS:
            yield "(macro)", weighting, name, *_measure(measures[name])


def _cell(name: str) -> str:
    """Return a name from the logs as a spreadsheet may read it: on one line, and never a formula."""
    return printable(f"'{name}" if name.startswith(_FORMULA) else name)


def _slice(scope: str, one: Mapping[str, Any]) -> Iterator[_Line]:
    """Yield the lines of some requests: ratios, totals, histogram, positions."""
    for weighting in ("pooled", "mean_over_requests", "estimated"):
        for name in RATIOS:
            if name in one[weighting]:
                yield scope, weighting, name, *_measure(one[weighting][name])
    for name in _SUMS:
        yield scope, "pooled", name, one["pooled"][name], None, None, None
    for j, steps in enumerate(one["pooled"]["acceptance_histogram"] or ()):
        yield scope, "pooled", f"acceptance_histogram[{j}]", steps, None, None, None
    for entry in one["per_position"]:
        for rate in ("marginal_rate", "conditional_rate"):
            yield scope, "pooled", f"{rate}[{entry['position']}]", *_measure(entry[rate])


def _measure(measure: Mapping[str, Any]) -> _Line:
    number = measure.get("num_requests", measure.get("num_groups"))
    return measure["value"], measure["low"], measure["high"], number
