"""The acceptance table: both weightings, for all requests and for each category."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.layout import Column, Paragraph, Part, Table, Tone, count, decimal, percentage, printable

__all__ = ["weighting_parts"]

_COLUMNS = (
    Column(header="category", is_text=True),
    Column(header="", is_text=True),
    Column(header="requests"),
    Column(header="acceptance length"),
    Column(header="tokens per decode step"),
    Column(header="acceptance rate"),
    Column(header="steps"),
    Column(header="drafted"),
    Column(header="accepted"),
)
_LABELS = {
    "pooled": "pooled",
    "mean_over_requests": "mean",
    "mean_acceptance_length": "acceptance length",
    "tokens_per_decode_step": "tokens per decode step",
    "draft_acceptance_rate": "acceptance rate",
    "num_spec_steps": "steps",
    "num_draft_tokens": "drafted",
    "num_accepted_draft_tokens": "accepted",
}
_SUMS = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")


def weighting_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the table, and a warning when records contradict themselves.

    Args:
        document: what ``report_document`` made, with ``acceptance``.
    """
    acceptance, categories = document["acceptance"], document["categories"]
    rows = _rows("(all)", acceptance)
    if len(categories) >= 2:
        for name, category in categories.items():
            if category["acceptance"] is not None:
                rows += _rows(printable(name), category["acceptance"])
    yield Table(
        title="Acceptance", columns=_COLUMNS, rows=tuple(rows), notes=_notes(acceptance, document["definitions"])
    )
    if acceptance["num_inconsistent_requests"]:
        number = count(acceptance["num_inconsistent_requests"])
        yield Paragraph(text=f"Records whose metrics contradict each other: {number}", tone=Tone.BAD)


def _rows(name: str, acceptance: Mapping[str, Any]) -> list[tuple[str, ...]]:
    pooled, mean = acceptance["pooled"], acceptance["mean_over_requests"]
    rows = [(name, "pooled", *_ratios(pooled), *(count(pooled[key]) for key in _SUMS))]
    if mean is not None:
        rows.append(("", "mean", *_ratios(mean), "", "", ""))
    return rows


def _ratios(weighting: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        count(weighting["num_requests"]),
        decimal(weighting["mean_acceptance_length"]),
        decimal(weighting["tokens_per_decode_step"]),
        percentage(weighting["draft_acceptance_rate"]),
    )


def _notes(acceptance: Mapping[str, Any], definitions: Mapping[str, str]) -> tuple[str, ...]:
    pooled, mean = acceptance["pooled"], acceptance["mean_over_requests"]
    notes = [f"{label}: {definitions[key]}" for key, label in _LABELS.items() if acceptance.get(key, key) is not None]
    if acceptance["source"] == "counters":
        notes.insert(0, "from the Prometheus counters, because no record carries metrics")
    if pooled["num_discarded_tokens"]:
        notes.append(f"matched or next tokens that a stop cut off: {count(pooled['num_discarded_tokens'])}")
    if mean is not None and mean["num_requests_without_step"]:
        notes.append(f"requests without a step, left out of the mean: {count(mean['num_requests_without_step'])}")
    return tuple(notes)
