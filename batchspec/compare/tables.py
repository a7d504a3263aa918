"""A comparison as tables and sentences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from batchspec.compare.text_lines import text_lines
from batchspec.report.definitions import DEFINITIONS
from batchspec.report.layout import ABSENT, Column, Paragraph, Part, Table, count, decimal, percentage, printable

__all__ = ["comparison_parts"]

_FEW_PAIRS = 20
_LABELS = {
    "mean_acceptance_length": "acceptance length",
    "draft_acceptance_rate": "acceptance rate",
    "tokens_per_decode_step": "tokens per decode step",
    "marginal_rate": "marginal rate",
    "ms_per_output_token": "ms per output token",
    "time_to_first_token_ms": "ms to the first token",
}
_WEIGHTINGS = {"pooled": "pooled", "mean_over_requests": "mean"}
_SPEED = ("ms_per_output_token", "time_to_first_token_ms")
_SHARES = ("draft_acceptance_rate", "marginal_rate")
_CATEGORY = "category "
_NUMBERS = tuple(Column(header=header) for header in ("A", "B", "B - A", "95 % interval", "pairs"))
_DEFINED = ("mean_acceptance_length", "draft_acceptance_rate", "tokens_per_decode_step")


def comparison_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of what ``compare_runs`` made, top to bottom."""
    yield Paragraph(text="\n".join(_about(document)))
    measures: Sequence[Mapping[str, Any]] = document["measures"]
    speed = [one for one in measures if one["name"] in _SPEED]
    by_category = [one for one in measures if _is_of_category(one)]
    positions = [one for one in measures if one["name"] == "marginal_rate" and one not in by_category]
    others = [one for one in measures if one not in speed and one not in positions and one not in by_category]
    if others:
        yield _table("Acceptance", others, notes=_notes(document, others))
        yield from (Paragraph(text=_verdict(one)) for one in others[:1] if one["name"] == "mean_acceptance_length")
    else:
        yield Paragraph(text="No acceptance to compare: no request has metrics in both runs.")
    lengths = [one for one in by_category if (one["name"], one["weighting"]) == ("mean_acceptance_length", "pooled")]
    if len(lengths) > 1:
        yield _category_table(lengths)
    if positions:
        yield _table("Acceptance by position in the draft", positions, notes=tuple(_position_notes(document)))
    if speed:
        yield _table("Speed of the requests, from their timing fields", speed, notes=())
    yield from _throughput(document["throughput"])
    yield Paragraph(text="\n".join(text_lines(document["texts"])))


def _about(document: Mapping[str, Any]) -> Iterator[str]:
    for name, run in document["runs"].items():
        without = f", {count(run['num_without_id'])} rows without an id" if run["num_without_id"] else ""
        left_out = f", left out {count(run['num_left_out'])}" if run["num_left_out"] else ""
        served, failed = count(run["num_served"]), count(run["num_failed"])
        yield f"{name.upper()}: {printable(run['path'])}, served {served}, failed {failed}{left_out}{without}"
    yield from (f"Setting: {printable(phrase)}" for phrase in document["changed_settings"] or ())
    pairs = document["pairs"]
    yield f"Pairs: {count(pairs['num_pairs'])} requests served in both"
    names = {
        "only_in_a": "only in A",
        "only_in_b": "only in B",
        "failed_in_one": "failed in one run",
        "failed_in_both": "failed in both runs",
        "left_out": "left out, as standard error says",
        "repeated": "failed rows with the id of a served one",
    }
    for key, name in names.items():
        if pairs[key]["num_requests"]:
            yield f"Not compared, {name}: {_listed(pairs[key]['named'], pairs[key]['num_requests'])}"


def _listed(named: Sequence[str], number: int) -> str:
    more = f" and {count(number - len(named))} more" if number > len(named) else ""
    return f"{count(number)} ({', '.join(map(printable, named))}{more})"


def _table(title: str, measures: Sequence[Mapping[str, Any]], *, notes: tuple[str, ...]) -> Table:
    return Table(
        title=title,
        columns=(Column(header="", is_text=True), Column(header="", is_text=True), *_NUMBERS),
        rows=tuple((_label(one), _kind(one), *_numbers(one)) for one in measures),
        notes=notes,
    )


def _category_table(measures: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        title="Acceptance length by category, pooled",
        columns=(Column(header="category", is_text=True), *_NUMBERS),
        rows=tuple((printable(one["detail"].removeprefix(_CATEGORY)), *_numbers(one)) for one in measures),
        notes=("the other numbers of the categories are in --json, and --require asks for them",),
    )


def _is_of_category(measure: Mapping[str, Any]) -> bool:
    return (measure["detail"] or "").startswith(_CATEGORY)


def _label(measure: Mapping[str, Any]) -> str:
    return _LABELS[measure["name"]] if measure["name"] != "marginal_rate" else f"position {measure['detail']}"


def _numbers(measure: Mapping[str, Any]) -> Iterator[str]:
    form = _form(measure["name"])
    yield form(measure["a"]["value"])
    yield form(measure["b"]["value"])
    yield _signed(measure["difference"]["value"], form)
    yield _interval(measure["difference"], form)
    yield count(measure["num_pairs"])


def _kind(measure: Mapping[str, Any]) -> str:
    weighting = _WEIGHTINGS[measure["weighting"]]
    if measure["name"] == "marginal_rate" or measure["detail"] is None:
        return weighting
    return printable(f"{weighting}, {measure['detail']}")


def _form(name: str) -> Callable[[float | None], str]:
    return percentage if name in _SHARES else decimal


def _signed(value: float | None, form: Callable[[float | None], str]) -> str:
    return form(value) if value is None or value < 0 else f"+{form(value)}"


def _interval(estimate: Mapping[str, float | None], form: Callable[[float | None], str]) -> str:
    bounds = estimate["low"], estimate["high"]
    return ABSENT if None in bounds else " to ".join(_signed(bound, form) for bound in bounds)


def _notes(document: Mapping[str, Any], measures: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    shown = {measure["name"] for measure in measures}
    bootstrap = document["bootstrap"]
    notes = [f"{_LABELS[name]}: {DEFINITIONS[name]}" for name in _DEFINED if name in shown]
    notes += [f"pooled: {DEFINITIONS['pooled']}", f"mean: {DEFINITIONS['mean_over_requests']}"]
    draws = f"requests drawn {count(bootstrap['num_resamples'])} times, each with both its answers"
    notes.append(f"95 % interval: of B - A, by a paired bootstrap ({draws})")
    if document["pairs"]["num_pairs"] < _FEW_PAIRS:
        notes.append(f"fewer than {_FEW_PAIRS} pairs: the intervals are a rough guide")
    return tuple(notes)


def _position_notes(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"{_LABELS['marginal_rate']}: {DEFINITIONS['marginal_rate']}"
    a, b = (document["runs"][name]["num_positions"] for name in "ab")
    if a != b:
        yield f"positions: {a} in A, {b} in B; those that both have are compared"


def _verdict(length: Mapping[str, Any]) -> str:
    """Return what the pooled acceptance length says."""
    difference = length["difference"]
    low, high = difference["low"], difference["high"]
    if low is None or high is None:
        return "Too few requests to say which run accepts more."
    size = f"{_signed(difference['value'], decimal)}, 95 % interval {_interval(difference, decimal)}"
    if low > 0:
        return f"B accepts more than A: acceptance length {size}."
    if high < 0:
        return f"B accepts less than A: acceptance length {size}."
    return f"No difference is shown: acceptance length {size}."


def _throughput(throughput: Mapping[str, Mapping[str, Any] | None]) -> Iterator[Part]:
    a, b = throughput["a"], throughput["b"]
    if a is None or b is None:
        return
    first, second = a.get("output_tokens_per_second"), b.get("output_tokens_per_second")
    if first and second:
        rates = f"A {decimal(first, digits=1)}, B {decimal(second, digits=1)} output tok/s"
        yield Paragraph(
            text=f"Throughput of the whole runs: {rates}, {decimal(second / first, digits=3)} times A (one run each; "
            "the first run of an installation also compiles)"
        )
