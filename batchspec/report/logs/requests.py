"""Tables about single requests: how they spread, those at both ends, and how acceptance changes along an output."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from batchspec.report.layout import ABSENT, Column, Part, Table, bar, count, decimal, percentage, printable

__all__ = ["end_tables", "over_output_table", "spread_table"]

_SPREAD: Mapping[str, tuple[str, Callable[[float | None], str]]] = {
    "mean_acceptance_length": ("acceptance length", decimal),
    "tokens_per_decode_step": ("tokens per decode step", decimal),
    "draft_acceptance_rate": ("acceptance rate", percentage),
}
_TITLES = {"lowest": "Requests with the lowest acceptance length", "highest": "Requests with the highest"}


def spread_table(distribution: Mapping[str, Any]) -> Table:
    """Return percentiles of the requests' own ratios."""
    percentiles = ("p10", "p50", "p90")
    return Table(
        title="Spread over requests",
        columns=(
            Column(header="", is_text=True),
            Column(header="requests"),
            *(Column(header=name) for name in percentiles),
        ),
        rows=tuple(
            (
                label,
                count(distribution[name]["num_requests"]),
                *(form(distribution[name][percentile]) for percentile in percentiles),
            )
            for name, (label, form) in _SPREAD.items()
        ),
        notes=("p10: one request in ten is below; requests without a step are left out",),
    )


def over_output_table(over_output: Mapping[str, Any] | None) -> Iterator[Part]:
    """Yield acceptance by output position; nothing where no request tells its steps."""
    if over_output is None:
        return
    most = max((entry["mean_acceptance_length"] or 0 for entry in over_output["bins"]), default=0)
    notes = [f"output tokens before the step; {count(over_output['num_requests'])} requests tell their steps"]
    guessed = over_output["num_requests_with_estimated_positions"]
    if guessed:
        notes.append(f"{count(guessed)} of them not where: as if no decode step had been without a draft (estimated)")
    yield Table(
        title="Acceptance over the output",
        columns=(
            Column(header="output position", is_text=True),
            Column(header="steps"),
            Column(header="acceptance length"),
            Column(header="", is_text=True),
        ),
        rows=tuple(
            (
                f"{entry['first_position']:,} to {entry['end_position'] - 1:,}",
                count(entry["num_spec_steps"]),
                decimal(entry["mean_acceptance_length"]),
                bar((entry["mean_acceptance_length"] or 0) / most if most else None),
            )
            for entry in over_output["bins"]
        ),
        notes=tuple(notes),
    )


def end_tables(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the requests at both ends, with where they stand."""
    for end, title in _TITLES.items():
        if document[end]:
            yield Table(
                title=title,
                columns=(
                    Column(header="request", is_text=True),
                    Column(header="at", is_text=True),
                    Column(header="acceptance length"),
                    Column(header="acceptance rate"),
                    Column(header="steps"),
                ),
                rows=tuple(map(_request, document[end])),
            )


def _request(entry: Mapping[str, Any]) -> tuple[str, ...]:
    choice = "" if entry["choice"] is None else f" choice {entry['choice']}"
    return (
        printable(entry["custom_id"] or ABSENT),
        printable(f"{entry['path']}:{entry['line']}{choice}"),
        decimal(entry["mean_acceptance_length"]),
        percentage(entry["draft_acceptance_rate"]),
        count(entry["num_spec_steps"]),
    )
