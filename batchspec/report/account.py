"""The reconciliation as a table and a verdict."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.layout import Column, Paragraph, Part, Table, Tone, count, printable

__all__ = ["reconciliation_parts"]

_NAMES = {
    "num_spec_steps": "steps",
    "num_draft_tokens": "drafted",
    "num_accepted_draft_tokens": "accepted",
    "num_accepted_tokens_per_pos": "accepted at position",
}


def reconciliation_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the table of both accounts and the verdict, or the reason why there is none.

    Args:
        document: what ``report_document`` made.
    """
    reconciliation = document["reconciliation"]
    if reconciliation is not None:
        yield _table(reconciliation["rows"], document["definitions"])
        yield _verdict(reconciliation)
    elif document["acceptance"] is not None:
        is_counted = document["acceptance"]["source"] == "counters"
        missing = "no record carries metrics" if is_counted else "there are no Prometheus totals"
        yield Paragraph(text=f"Not reconciled: {missing}.")


def _table(rows: list[Mapping[str, Any]], definitions: Mapping[str, str]) -> Table:
    causes = list(rows[0]["unreported"])
    return Table(
        title="Reconciliation",
        columns=(
            Column(header="quantity", is_text=True),
            Column(header="per-request sums"),
            *(Column(header="unreported", detail=printable(cause)) for cause in causes or [""]),
            Column(header="Prometheus totals"),
            Column(header="difference"),
        ),
        rows=tuple(
            (
                _name(row) if row["position"] is None else f"at position {row['position']}",
                count(row["reported"]),
                *([count(row["unreported"][cause]) for cause in causes] or ["0"]),
                count(row["counters"]),
                f"{row['difference']:+,}" if row["difference"] else "0",
            )
            for row in rows
        ),
        notes=tuple(f"{name}: {definitions[name]}" for name in ("unreported", "difference")),
    )


def _name(row: Mapping[str, Any]) -> str:
    name = _NAMES[row["quantity"]]
    return name if row["position"] is None else f"{name} {row['position']}"


def _verdict(reconciliation: Mapping[str, Any]) -> Paragraph:
    rows = reconciliation["rows"]
    if reconciliation["is_exact"]:
        return Paragraph(text=f"Reconciled: all {len(rows)} totals agree exactly, zero differences.", tone=Tone.GOOD)
    differing = ", ".join(_name(row) for row in rows if row["difference"])
    number = reconciliation["num_differences"]
    return Paragraph(text=f"NOT reconciled: {number} of {len(rows)} totals differ ({differing}).", tone=Tone.BAD)
