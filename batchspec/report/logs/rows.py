"""What the rows of the logs were, what was left out of them, and where their numbers are from."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.ingest import Origin
from batchspec.report.layout import Column, Paragraph, Part, Table, Tone, count, decimal, printable

__all__ = ["left_out_table", "origin_table", "row_parts", "stated_table"]


def row_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the files and the counts of their rows."""
    yield Paragraph(text=" · ".join(printable(path) for path in document["files"]) or "no rows", tone=Tone.QUIET)
    rows, overall = document["rows"], document["overall"]
    lines = [f"Rows: {count(rows['num_rows'])}, {count(rows['num_with_acceptance'])} with acceptance numbers"]
    lines += _listed("Engines", document["engines"])
    lines += _listed("k", document["num_spec_tokens"])
    if rows["num_null"]:
        several = count(rows["num_null_with_several_choices"])
        lines.append(f"Without acceptance numbers (null): {count(rows['num_null'])}, {several} with several choices")
    if rows["num_errors"]:
        codes = ", ".join(f"{printable(code)} {count(number)}" for code, number in rows["errors_by_code"].items())
        lines.append(f"Errors: {count(rows['num_errors'])} ({codes})")
    if overall is not None:
        lines.append(f"Requests without a step: {count(overall['num_requests_without_step'])}")
        unknown = overall["num_requests_without_step_count"]
        if unknown:
            lines.append(f"Requests whose engine does not tell its steps: {count(unknown)}")
    if document["num_requests_without_group"]:
        lines.append(f"Requests without a {document['by']}: {count(document['num_requests_without_group'])}")
    yield Paragraph(text="\n".join(lines))
    yield from _unbelievable(rows)


def _listed(name: str, counts: Mapping[str, int]) -> Iterator[str]:
    if counts:
        yield f"{name}: " + ", ".join(f"{printable(key)} ({count(number)})" for key, number in counts.items())


def _unbelievable(rows: Mapping[str, Any]) -> Iterator[Part]:
    malformed, contradictory = rows["num_malformed"], rows["num_contradictory"]
    if malformed or contradictory:
        yield Paragraph(
            text=f"Left out: {count(malformed)} malformed, {count(contradictory)} that contradict themselves",
            tone=Tone.BAD,
        )


def left_out_table(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the rows that could not be believed, the first of them if there are many."""
    listed, rows = document["left_out"], document["rows"]
    if not listed:
        return
    more = rows["num_malformed"] + rows["num_contradictory"] - len(listed)
    yield Table(
        title="Left out of every number",
        columns=tuple(Column(header=name, is_text=True) for name in ("at", "request", "kind", "why")),
        rows=tuple(
            (
                printable(f"{one['path']}:{one['line']}"),
                printable(one["custom_id"] or ""),
                one["reason"],
                printable(one["message"]),
            )
            for one in listed
        ),
        notes=(f"and {count(more)} more",) if more else (),
    )


def origin_table(document: Mapping[str, Any]) -> Table:
    """Return for each field how many requests state it, and in which way."""
    definitions = document["definitions"]
    return Table(
        title="Where the numbers are from",
        columns=(Column(header="field", is_text=True), *(Column(header=origin.value) for origin in Origin)),
        rows=tuple(
            (field, *(count(counts[origin.value]) for origin in Origin))
            for field, counts in document["origins"].items()
        ),
        notes=tuple(f"{origin.value}: {definitions[origin.value]}" for origin in Origin),
    )


def stated_table(stated: list[Mapping[str, Any]]) -> Iterator[Part]:
    """Yield the lengths that engines define in their own way; nothing where there are none."""
    if stated:
        yield Table(
            title="Lengths as the engines define them",
            columns=(
                *(Column(header=name, is_text=True) for name in ("engine", "field", "definition")),
                Column(header="requests"),
                Column(header="mean"),
            ),
            rows=tuple(
                (
                    one["engine"],
                    one["field"],
                    one["definition"],
                    count(one["num_requests"]),
                    decimal(one["mean"]),
                )
                for one in stated
            ),
            notes=("not comparable with 1 + accepted / steps",),
        )
