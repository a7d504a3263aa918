"""A reconciliation as a table, what it is about, and the verdict."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.audit.gap import label
from batchspec.audit.verdict import Outcome
from batchspec.report.layout import Column, Paragraph, Part, Table, Tone, count, printable

__all__ = ["audit_parts"]

_TONES = {Outcome.EXACT: Tone.GOOD, Outcome.EXPLAINED: Tone.PLAIN, Outcome.UNEXPLAINED: Tone.BAD}


def audit_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of what ``reconcile_logs`` made, top to bottom."""
    yield Paragraph(text="\n".join(_about(document)))
    yield _table(document)
    verdict, *reasons = document["sentences"]
    yield Paragraph(text=printable(verdict), tone=_TONES[Outcome(document["verdict"])])
    if reasons:
        yield Paragraph(text="\n".join(printable(reason) for reason in reasons))


def _about(document: Mapping[str, Any]) -> Iterator[str]:
    responses, scrapes = document["responses"], document["scrapes"]
    rows, reported = count(responses["num_rows"]), count(responses["num_reported"])
    yield f"Responses: {rows} rows in {printable(responses['path'])}, {reported} with acceptance metrics"
    for cause, silent in responses["without_metrics"].items():
        more = silent["num_rows"] - len(silent["named"])
        names = ", ".join(map(printable, silent["named"])) + (f" and {count(more)} more" if more else "")
        yield f"Without metrics, {cause}: {count(silent['num_rows'])} ({names})"
    before = "zero" if scrapes["before"] is None else printable(scrapes["before"])
    yield f"Counters: from {before} to {printable(scrapes['after'])}"
    if scrapes["num_finished_sequences"] is not None:
        ended, outputs = count(scrapes["num_finished_sequences"]), count(responses["num_sequences"])
        yield f"Sequences: {outputs} in the responses, {ended} ended between the scrapes"


def _table(document: Mapping[str, Any]) -> Table:
    rows, definitions = document["rows"], document["definitions"]
    causes = list(rows[0]["unreported"])
    engines = document["scrapes"]["engines"]
    engines = engines if len(engines) > 1 else []
    return Table(
        title="Reconciliation",
        columns=(
            Column(header="quantity", is_text=True),
            Column(header="per-request sums"),
            *(Column(header="unreported", detail=printable(cause)) for cause in causes),
            *(Column(header=f"engine {printable(engine)}") for engine in engines),
            Column(header="counters"),
            Column(header="difference"),
        ),
        rows=tuple(
            (
                label((row["quantity"], row["position"])),
                count(row["reported"]),
                *(count(row["unreported"][cause]) for cause in causes),
                *(count(row["counters_by_engine"].get(engine)) for engine in engines),
                count(row["counters"]),
                _signed(row["difference"]),
            )
            for row in rows
        ),
        notes=tuple(
            f"{name}: {definitions[key]}"
            for name, key in (
                ("per-request sums", "reported"),
                ("unreported", "unreported"),
                ("counters", "counters"),
                ("difference", "difference"),
            )
            if causes or key != "unreported"
        ),
    )


def _signed(difference: int | None) -> str:
    return f"{difference:+,}" if difference else count(difference)
