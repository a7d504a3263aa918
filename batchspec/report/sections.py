"""From the report document to the parts that both renderings show; nothing is computed anew but shares of a sum."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.account import reconciliation_parts
from batchspec.report.layout import Column, Paragraph, Part, Table, Tone, bar, count, decimal, percentage, printable

__all__ = ["report_parts"]

_SHOWN = {"model": "model", "method": "drafts by", "num_spec_tokens": "k", "level": "metrics"}


def report_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a report, top to bottom.

    Args:
        document: what ``report_document`` made.
    """
    yield from _summary(document)
    acceptance = document["acceptance"]
    if acceptance is None:
        yield Paragraph(text="No acceptance numbers: nothing was drafted and no record carries metrics.")
    else:
        yield from _acceptance(document)
        yield _positions(document)
        yield from _histogram(document)
    yield from reconciliation_parts(document)


def _summary(document: Mapping[str, Any]) -> Iterator[Part]:
    run, requests, tokens = document["run"], document["requests"], document["tokens"]
    shown = [f"{name} {printable(str(run[key]))}" for key, name in _SHOWN.items() if run.get(key) is not None]
    if shown:
        yield Paragraph(text=" · ".join(shown), tone=Tone.QUIET)
    failed = ", ".join(f"{printable(code)} {count(number)}" for code, number in requests["failed_by_code"].items())
    reasons = ", ".join(f"{printable(name)} {count(number)}" for name, number in requests["finish_reasons"].items())
    lines = [
        f"Requests: {count(requests['num_requests'])}, served {count(requests['num_served'])}"
        + (f" ({reasons})" if reasons else "")
        + f", failed {count(requests['num_failed'])}"
        + (f" ({failed})" if failed else ""),
        f"Tokens: {count(tokens['prompt_tokens'])} in prompts, {count(tokens['completion_tokens'])} in outputs",
    ]
    throughput = document["throughput"]
    if throughput is not None:
        lines.append(
            f"Throughput: prompt {decimal(throughput['prompt_tokens_per_second'], digits=1)} tok/s, "
            f"output {decimal(throughput['output_tokens_per_second'], digits=1)} tok/s, "
            f"elapsed {decimal(throughput['elapsed_seconds'], digits=1)} s"
        )
    yield Paragraph(text="\n".join(lines))


def _definitions(document: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{label}: {document['definitions'][key]}" for key, label in names.items())


def _acceptance(document: Mapping[str, Any]) -> Iterator[Part]:
    acceptance = document["acceptance"]
    rows = _weightings("(all)", acceptance)
    if len(document["categories"]) >= 2:
        for name, category in document["categories"].items():
            if category["acceptance"] is not None:
                rows += _weightings(printable(name), category["acceptance"])
    labels = {
        "pooled": "pooled",
        "mean_over_requests": "mean",
        "mean_acceptance_length": "acceptance length",
        "tokens_per_decode_step": "tokens per decode step",
        "draft_acceptance_rate": "acceptance rate",
        "num_spec_steps": "steps",
        "num_draft_tokens": "drafted",
        "num_accepted_draft_tokens": "accepted",
    }
    from_counters = "From the Prometheus counters, because no record carries metrics. "
    mean = acceptance["mean_over_requests"]
    num_without_step = 0 if mean is None else mean["num_requests_without_step"]
    notes = _definitions(document, labels)
    if acceptance["source"] == "counters":
        notes = (from_counters, *notes)
    if num_without_step:
        notes = (*notes, f"requests without a step, left out of the mean: {count(num_without_step)}")
    yield Table(
        title="Acceptance",
        columns=(
            Column(header="category", is_text=True),
            Column(header="", is_text=True),
            Column(header="requests"),
            Column(header="acceptance length"),
            Column(header="tokens per decode step"),
            Column(header="acceptance rate"),
            Column(header="steps"),
            Column(header="drafted"),
            Column(header="accepted"),
        ),
        rows=tuple(rows),
        notes=notes,
    )
    if acceptance["num_inconsistent_requests"]:
        number = count(acceptance["num_inconsistent_requests"])
        yield Paragraph(text=f"Records whose metrics contradict each other: {number}", tone=Tone.BAD)


def _weightings(name: str, acceptance: Mapping[str, Any]) -> list[tuple[str, ...]]:
    pooled, mean = acceptance["pooled"], acceptance["mean_over_requests"]
    sums = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
    rows = [(name, "pooled", *_ratios(pooled), *(count(pooled[key]) for key in sums))]
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


def _positions(document: Mapping[str, Any]) -> Table:
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
            for entry in document["acceptance"]["per_position"]
        ),
        notes=_definitions(document, {"marginal_rate": "marginal rate", "conditional_rate": "conditional rate"}),
    )


def _histogram(document: Mapping[str, Any]) -> Iterator[Part]:
    histogram = document["acceptance"]["pooled"]["acceptance_histogram"]
    if histogram is None:
        yield Paragraph(text="No acceptance histogram: the counters contradict each other.", tone=Tone.BAD)
        return
    num_steps, most = sum(histogram), max(histogram)
    yield Table(
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
        notes=_definitions(document, {"acceptance_histogram": "histogram"}),
    )
