"""Which setting is best, for all requests and for each category, as a table."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.replay.cells import ranged
from batchspec.replay.ratios import SPEEDUP
from batchspec.report.layout import ABSENT, Column, Part, Table, count, printable

__all__ = ["best_parts"]

_ALL = "(all)"
_CRITERIA = {SPEEDUP: "predicted speed-up", "tokens_per_decode_step": "tokens per decode step"}


def best_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the best setting for all requests and for each category."""
    found = {_ALL: document["all"], **document["categories"]}
    rows = tuple(_best_row(printable(name), summary) for name, summary in found.items() if summary["best"] is not None)
    if not rows or len(document["settings"]) < 2:
        return
    definitions, criterion = document["definitions"], document["all"]["best"]["criterion"]
    yield Table(
        title=f"Best by {_CRITERIA[criterion]}",
        columns=(
            Column(header="category", is_text=True),
            Column(header="requests"),
            Column(header="best, k", is_text=True),
            Column(header=_CRITERIA[criterion]),
            Column(header="best in draws"),
            Column(header="next, k", is_text=True),
            Column(header="better by"),
        ),
        rows=rows,
        notes=(
            f"best: {definitions['best']}",
            f"best in draws: {definitions['share_of_draws']}",
            f"next: {definitions['next']}",
        ),
    )


def _best_row(name: str, summary: Mapping[str, Any]) -> tuple[str, ...]:
    best, rival = summary["best"], summary["best"]["next"]
    criterion = best["criterion"]
    return (
        name,
        count(summary["num_requests"]),
        _setting(best),
        ranged(criterion, best["value"], best["interval"]),
        _share(best["share_of_draws"]),
        "" if rival is None else _setting(rival),
        "" if rival is None else ranged(criterion, rival["difference"], rival["interval"]),
    )


def _share(fraction: float | None) -> str:
    return ABSENT if fraction is None else f"{100 * fraction:.0f} %"


def _setting(named: Mapping[str, Any]) -> str:
    return f"{named['method']}, {named['num_spec_tokens']}"
