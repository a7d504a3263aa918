"""Acceptance by position in the draft, and the histogram of accepted lengths."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batchspec.report.layout import Column, Paragraph, Part, Table, Tone, bar, count, percentage

__all__ = ["distribution_parts", "histogram_table"]


def distribution_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the per-position table and the pooled histogram.

    Args:
        document: what ``report_document`` made, with ``acceptance``.
    """
    yield _positions(document["acceptance"]["per_position"], document["definitions"])
    histogram = document["acceptance"]["pooled"]["acceptance_histogram"]
    if histogram is None:
        yield Paragraph(text="No acceptance histogram: the counters contradict each other.", tone=Tone.BAD)
    else:
        yield histogram_table(histogram, document["definitions"])


def _positions(entries: Sequence[Mapping[str, Any]], definitions: Mapping[str, str]) -> Table:
    return Table(
        title="Acceptance by position in the draft",
        columns=(
            Column(header="position"),
            Column(header="drafted"),
            Column(header="accepted"),
            Column(header="marginal rate"),
            Column(header="conditional rate"),
        ),
        rows=tuple(
            (
                str(entry["position"]),
                count(entry["num_drafted"]),
                count(entry["num_accepted"]),
                percentage(entry["marginal_rate"]),
                percentage(entry["conditional_rate"]),
            )
            for entry in entries
        ),
        notes=(
            f"marginal rate: {definitions['marginal_rate']}",
            f"conditional rate: {definitions['conditional_rate']}",
        ),
    )


def histogram_table(histogram: Sequence[int], definitions: Mapping[str, str]) -> Table:
    """Return the pooled histogram with a bar for each entry.

    Args:
        histogram: entry j: steps that accepted exactly j draft tokens.
        definitions: of the numbers, by name.
    """
    num_steps, most = sum(histogram), max(histogram)
    return Table(
        title="Acceptance histogram, all requests pooled",
        columns=(
            Column(header="accepted"),
            Column(header="steps"),
            Column(header="share"),
            Column(header="", is_text=True),
        ),
        rows=tuple(
            (
                str(j),
                count(number),
                percentage(number / num_steps if num_steps else None),
                bar(number / most if most else None),
            )
            for j, number in enumerate(histogram)
        ),
        notes=(f"histogram: {definitions['acceptance_histogram']}",),
    )
