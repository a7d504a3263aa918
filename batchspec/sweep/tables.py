"""The comparison of a sweep's runs as tables and sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batchspec.report.layout import ABSENT, Column, Paragraph, Part, Table, Tone, count, decimal, percentage, printable
from batchspec.sweep.keys import KEYS, written
from batchspec.sweep.verdicts import verdict_parts

__all__ = ["sweep_parts"]

_RATIOS = {
    "mean_acceptance_length": "acceptance length",
    "tokens_per_decode_step": "tokens per decode step",
    "draft_acceptance_rate": "acceptance rate",
}
_MOST_KEYS = 4
_TEXTS = ("method", "draft_model", "recall_path")
_ON_ONE_ENGINE = "with the same max_num_seqs, max_num_batched_tokens and enable_prefix_caching"
_ONCE = "one run each, without loading the model: batchspec bench repeats its measurements and gives ranges"
_INTERRUPTED = "*: was interrupted and did some of its work twice, so that its speed is not compared"

Row = Mapping[str, Any]


def sweep_parts(document: Mapping[str, Any], *, by_category: bool) -> Iterator[Part]:
    """Yield the parts of what ``sweep_document`` made, top to bottom.

    Args:
        document: the comparison.
        by_category: with a table of the acceptance in each category.
    """
    points: Sequence[Row] = document["points"]
    num_requests = max((point["requests"]["num_requests"] for point in points if point["requests"]), default=None)
    about = f"model {printable(document['sweep']['model'])} · {count(num_requests)} requests · {len(points)} points"
    yield Paragraph(text=about, tone=Tone.QUIET)
    yield _whole(document, points)
    if by_category:
        yield from _by_category(document, points)
    yield from verdict_parts(document)


def _whole(document: Mapping[str, Any], points: Sequence[Row]) -> Table:
    keys = _varying(points)
    over, meaning = _over(points)
    return Table(
        title="Sweep",
        columns=(
            *_columns(keys),
            *(Column(header=label) for label in _RATIOS.values()),
            Column(header="output tok/s"),
            Column(header="elapsed s"),
            Column(header=over),
        ),
        rows=tuple(
            (
                *_values(point, keys),
                *_ratios(point["acceptance"]),
                _speed(point, "output_tokens_per_second"),
                _speed(point, "elapsed_seconds"),
                decimal(point["speedup"], digits=2),
            )
            for point in points
        ),
        notes=(
            *_definitions(document),
            f"{over}: {meaning}; {_ONCE}",
            *([_INTERRUPTED] if any(point["was_interrupted"] for point in points) else []),
        ),
    )


def _by_category(document: Mapping[str, Any], points: Sequence[Row]) -> Iterator[Table]:
    keys = _varying(points)
    names = sorted({name for point in points for name in point["categories"]})
    rows = [
        (printable(name), *_values(point, keys), *_ratios(point["categories"][name]))
        for name in names
        for point in points
        if point["categories"].get(name) is not None
    ]
    if rows:
        yield Table(
            title="By category",
            columns=(
                Column(header="category", is_text=True),
                *_columns(keys),
                *(Column(header=label) for label in _RATIOS.values()),
            ),
            rows=tuple(rows),
            notes=tuple(_definitions(document)),
        )


def _varying(points: Sequence[Row]) -> list[str]:
    """Return the method, and the keys in which points differ, in the order of the keys."""
    return [name for name in KEYS if name == "method" or len({_value(point, name) for point in points}) > 1]


def _columns(keys: Sequence[str]) -> Iterator[Column]:
    """Yield a column for every key, or one for all where they are too many."""
    if len(keys) > _MOST_KEYS:
        yield Column(header="point", is_text=True, longest=40)
    else:
        yield from (Column(header=name.replace("_", " "), is_text=name in _TEXTS) for name in keys)


def _value(point: Row, name: str) -> str:
    values = point["values"]
    return printable(written(values[name])) if name in values else ABSENT


def _values(point: Row, keys: Sequence[str]) -> Iterator[str]:
    if len(keys) > _MOST_KEYS:
        yield printable(point["point"])
    else:
        yield from (_value(point, name) for name in keys)


def _ratios(acceptance: Mapping[str, Any] | None) -> Iterator[str]:
    pooled = {} if acceptance is None else acceptance["pooled"]
    for name in _RATIOS:
        yield (percentage if name == "draft_acceptance_rate" else decimal)(pooled.get(name))


def _speed(point: Row, name: str) -> str:
    value = None if point["throughput"] is None else point["throughput"][name]
    return decimal(value, digits=1) + ("*" if point["was_interrupted"] else "")


def _definitions(document: Mapping[str, Any]) -> Iterator[str]:
    definitions = document["definitions"]
    yield f"all ratios are pooled: {definitions['pooled']}; {ABSENT} where nothing is drafted or recorded"
    for name, label in _RATIOS.items():
        yield f"{label}: {definitions[name]}"


def _over(points: Sequence[Row]) -> tuple[str, str]:
    """Return what the ratio is called, and what it means."""
    baselines = {point["baseline"] for point in points}
    methods = {point["values"]["method"] for point in points if point["point"] in baselines}
    if methods == {"none"}:
        return "over none", f"output tok/s over those of method none {_ON_ONE_ENGINE}"
    if len(baselines) == 1:
        return (
            "over first",
            "output tok/s over those of the first point, as there is none without drafts to compare with",
        )
    return "over base", f"output tok/s over those of method none {_ON_ONE_ENGINE}, or else of the first point"
