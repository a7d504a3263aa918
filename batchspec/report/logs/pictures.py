"""The pictures of a report of logs."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.layout import count, decimal, percentage
from batchspec.report.pictures.charts import Mark, Series, bar_chart, curve_chart, interval_chart, legend
from batchspec.report.pictures.markup import Markup, tag

__all__ = ["figures"]

_MAX_GROUPS = 60


def figures(document: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield a figure for each picture that the numbers allow.

    Args:
        document: what ``survey_logs`` made.
    """
    overall = document["overall"]
    if overall is None:
        return
    if overall["pooled"]["acceptance_histogram"] is not None:
        yield _histogram(overall["pooled"]["acceptance_histogram"])
    if overall["per_position"]:
        yield _positions(overall["per_position"])
    if document["groups"]:
        yield from _groups(document)
    if document["over_output"] is not None:
        yield _over_output(document["over_output"])
    if overall["distribution"]["mean_acceptance_length"]["bins"] is not None:
        yield _spread(overall["distribution"]["mean_acceptance_length"]["bins"])


def _figure(title: str, picture: Markup, *below: object) -> Markup:
    return tag("figure", tag("h2", title), picture, tag("figcaption", *below))


def _histogram(histogram: list[int]) -> Markup:
    total = sum(histogram)
    marks = [
        Mark(label=str(j), value=float(steps), tip=f"{j} accepted: {count(steps)} steps, {percentage(steps / total)}")
        for j, steps in enumerate(histogram)
        if total
    ] or [Mark(label="0", value=0.0, tip="no step")]
    title = "Acceptance histogram"
    picture = bar_chart(title, marks, across="draft tokens accepted in a step")
    return _figure(title, picture, f"Steps by accepted draft tokens; {count(total)} steps.")


def _positions(entries: list[Mapping[str, Any]]) -> Markup:
    series = [
        Series(name=name, marks=[_position(entry, rate) for entry in entries if entry[rate]["value"] is not None])
        for name, rate in (("marginal: accepted / steps", "marginal_rate"), ("conditional", "conditional_rate"))
    ]
    shown = [one for one in series if one.marks]
    title = "Acceptance by position in the draft"
    if not shown:
        return _figure(title, Markup(), "No step.")
    return _figure(title, curve_chart(title, shown, across="position in the draft", is_share=True), legend(shown))


def _position(entry: Mapping[str, Any], rate: str) -> Mark:
    measure = entry[rate]
    return Mark(
        label=str(entry["position"]),
        at=float(entry["position"]),
        value=measure["value"],
        low=measure["low"],
        high=measure["high"],
        tip=f"position {entry['position']}: {percentage(measure['value'])}{_between(measure, percentage)}",
    )


def _between(measure: Mapping[str, Any], form: Any) -> str:
    return "" if measure["low"] is None else f" ({form(measure['low'])} to {form(measure['high'])})"


def _groups(document: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield the lengths of the groups that have one, the largest groups where there are too many."""
    groups = {name: one for name, one in document["groups"].items() if one["pooled"]["mean_acceptance_length"]["value"]}
    largest = sorted(groups, key=lambda name: -groups[name]["num_requests"])[:_MAX_GROUPS]
    shown = {"(all)": document["overall"]} | {name: groups[name] for name in sorted(largest)}
    shown = {name: one for name, one in shown.items() if one["pooled"]["mean_acceptance_length"]["value"]}
    series = [
        Series(name=label, marks=[_length(name, one[weighting]) for name, one in shown.items()])
        for label, weighting in (("pooled", "pooled"), ("mean over requests", "mean_over_requests"))
    ]
    if shown:
        title = f"Acceptance length by {document['by']}"
        left_out = len(groups) - len(largest)
        more = f" The {left_out} smallest are not shown." if left_out else ""
        picture = interval_chart(title, series, across="acceptance length, tokens per step")
        yield _figure(title, picture, legend(series), more)


def _length(name: str, measures: Mapping[str, Any]) -> Mark:
    measure = measures["mean_acceptance_length"]
    return Mark(
        label=name,
        value=measure["value"],
        low=measure["low"],
        high=measure["high"],
        tip=f"{name}: {decimal(measure['value'])}{_between(measure, decimal)}",
    )


def _over_output(over_output: Mapping[str, Any]) -> Markup:
    marks = [
        Mark(
            label=f"{entry['first_position']:,}",
            at=float(entry["first_position"]),
            value=entry["mean_acceptance_length"],
            tip=f"from {entry['first_position']:,}: {decimal(entry['mean_acceptance_length'])}, "
            f"{count(entry['num_spec_steps'])} steps",
        )
        for entry in over_output["bins"]
        if entry["mean_acceptance_length"] is not None
    ]
    title = "Acceptance over the output"
    guessed = over_output["num_requests_with_estimated_positions"]
    more = f" Positions of {count(guessed)} requests are estimated." if guessed else ""
    picture = curve_chart(title, [Series(name="length", marks=marks)], across="output tokens before the step")
    return _figure(title, picture, f"Acceptance length of the steps that began there.{more}")


def _spread(bins: Mapping[str, Any]) -> Markup:
    edges, numbers = bins["edges"], bins["num_requests"]
    marks = [
        Mark(label=f"{low:.2f}", value=float(number), tip=f"{low:.3f} to {high:.3f}: {count(number)} requests")
        for low, high, number in zip(edges, edges[1:], numbers, strict=False)
    ]
    title = "Requests by acceptance length"
    picture = bar_chart(title, marks, across="acceptance length of a request, from")
    return _figure(title, picture, f"{count(sum(numbers))} requests with a step.")
