"""From the document of a report of logs to the parts that all renderings show; nothing is computed anew but shares."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.distribution import histogram_table
from batchspec.report.layout import Paragraph, Part, Tone
from batchspec.report.logs.lengths_and_rates import length_table, position_table, rate_table
from batchspec.report.logs.requests import end_tables, over_output_table, spread_table
from batchspec.report.logs.rows import left_out_table, origin_table, row_parts, stated_table

__all__ = ["log_parts"]

_NO_ACCEPTANCE = "No acceptance numbers: no row states any."


def log_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a report of logs, top to bottom.

    Args:
        document: what ``survey_logs`` made.
    """
    yield from row_parts(document)
    overall = document["overall"]
    if overall is None:
        yield Paragraph(text=_NO_ACCEPTANCE)
    else:
        yield length_table(document)
        yield rate_table(document)
        if overall["per_position"]:
            yield position_table(overall["per_position"], document["definitions"])
        histogram = overall["pooled"]["acceptance_histogram"]
        if histogram is not None:
            yield histogram_table(histogram, document["definitions"])
        yield spread_table(overall["distribution"])
        yield from over_output_table(document["over_output"])
        yield from end_tables(document)
        yield origin_table(document)
    yield from stated_table(document["stated_lengths"])
    yield from left_out_table(document)
    yield from _judgements(document.get("requirements") or [])


def _judgements(judged: list[Mapping[str, Any]]) -> Iterator[Part]:
    """Yield what the requirements came to."""
    for one in judged:
        tone, verdict = (Tone.GOOD, "holds") if one["holds"] else (Tone.BAD, "FAILED")
        value = "not known" if one["value"] is None else f"{one['value']:.4f}"
        between = "" if one["low"] is None else f", interval {one['low']:.4f} to {one['high']:.4f}"
        yield Paragraph(text=f"Requirement {one['require']} {verdict}: {value}{between}", tone=tone)
