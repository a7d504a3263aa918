"""The two main tables: acceptance lengths and acceptance rates, each with its interval."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.layout import Column, Table, count, decimal, percentage
from batchspec.report.logs.cells import interval_cell, scopes

__all__ = ["length_table", "position_table", "rate_table"]

_LENGTHS = ("mean_acceptance_length", "tokens_per_decode_step", "completion_tokens_per_step")
_LABELS = {
    "mean_acceptance_length": "acceptance length",
    "tokens_per_decode_step": "tokens per decode step",
    "completion_tokens_per_step": "output tokens per step",
    "draft_acceptance_rate": "acceptance rate",
    "num_spec_steps": "steps",
    "num_draft_tokens": "drafted",
    "num_accepted_draft_tokens": "accepted",
}
_SUMS = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
_LONGEST_NAME = 22
_ABSENT: Mapping[str, Any] = {"value": None, "low": None, "high": None, "num_requests": None}


def length_table(document: Mapping[str, Any]) -> Table:
    """Return the lengths of all requests and of each group, with the interval of the first."""
    return Table(
        title="Acceptance length",
        columns=(
            *_first_columns(document),
            Column(header="acceptance length"),
            Column(header="interval"),
            Column(header="tokens per decode step"),
            Column(header="output tokens per step"),
        ),
        rows=tuple(
            (
                name,
                weighting,
                _number(measures, "mean_acceptance_length"),
                decimal(_measure(measures, "mean_acceptance_length")["value"]),
                interval_cell(_measure(measures, "mean_acceptance_length")),
                *(decimal(_measure(measures, length)["value"]) for length in _LENGTHS[1:]),
            )
            for name, weighting, measures in scopes(document, "mean_acceptance_length")
        ),
        notes=_notes(document, ("pooled", "mean", *_LENGTHS, "interval", "estimated", "macro")),
    )


def rate_table(document: Mapping[str, Any]) -> Table:
    """Return the rates of all requests and of each group, with the counts that they are made of."""
    return Table(
        title="Acceptance rate",
        columns=(
            *_first_columns(document),
            Column(header="acceptance rate"),
            Column(header="interval"),
            *(Column(header=_LABELS[name]) for name in _SUMS),
        ),
        rows=tuple(
            (
                name,
                weighting,
                _number(measures, "draft_acceptance_rate"),
                percentage(_measure(measures, "draft_acceptance_rate")["value"]),
                interval_cell(_measure(measures, "draft_acceptance_rate"), is_share=True),
                *(count(measures[sum_]) if sum_ in measures else "" for sum_ in _SUMS),
            )
            for name, weighting, measures in scopes(document, "draft_acceptance_rate")
        ),
        notes=_notes(document, ("draft_acceptance_rate", *_SUMS)),
    )


def position_table(entries: list[Mapping[str, Any]], definitions: Mapping[str, str]) -> Table:
    """Return both rates of each position in the draft, with their intervals."""
    return Table(
        title="Acceptance by position in the draft",
        columns=(
            Column(header="position"),
            Column(header="drafted"),
            Column(header="accepted"),
            Column(header="marginal rate"),
            Column(header="interval"),
            Column(header="conditional rate"),
            Column(header="interval"),
        ),
        rows=tuple(
            (
                str(entry["position"]),
                count(entry["num_drafted"]),
                count(entry["num_accepted"]),
                percentage(entry["marginal_rate"]["value"]),
                interval_cell(entry["marginal_rate"], is_share=True),
                percentage(entry["conditional_rate"]["value"]),
                interval_cell(entry["conditional_rate"], is_share=True),
            )
            for entry in entries
        ),
        notes=(
            f"marginal rate: {definitions['marginal_rate']}",
            f"conditional rate: {definitions['conditional_rate']}",
        ),
    )


def _first_columns(document: Mapping[str, Any]) -> tuple[Column, ...]:
    return (
        Column(header=document["by"] or "", is_text=True, longest=_LONGEST_NAME),
        Column(header="", is_text=True),
        Column(header="requests"),
    )


def _measure(measures: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = measures.get(name, _ABSENT)
    return found


def _number(measures: Mapping[str, Any], name: str) -> str:
    """Return how many requests a measure is made of; of the macro mean, how many groups."""
    measure = _measure(measures, name)
    return count(measure["num_groups"] if "num_groups" in measure else measure["num_requests"])


def _notes(document: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the definitions of what the table shows."""
    definitions = {"mean": document["definitions"]["mean_over_requests"]} | dict(document["definitions"])
    shown = {"macro": document["macro"] is not None, "estimated": _has_estimates(document)}
    notes = [f"{_LABELS.get(name, name)}: {definitions[name]}" for name in names if shown.get(name, True)]
    return (*notes, *(_fixed_groups(document["macro"]) if "macro" in names and shown["macro"] else ()))


def _fixed_groups(macro: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many groups say nothing of how far their ratio would move."""
    length = macro["pooled"]["mean_acceptance_length"]
    fixed, all_groups = length["num_fixed_groups"], length["num_groups"]
    if fixed:
        effect = "there is no interval" if fixed == all_groups else "its interval is too narrow"
        yield f"macro: {count(fixed)} of {count(all_groups)} groups have one request and cannot vary, so {effect}"


def _has_estimates(document: Mapping[str, Any]) -> bool:
    return any(one["estimated"] for one in (document["overall"], *document["groups"].values()))
