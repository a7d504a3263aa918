"""A replay as tables: every setting for all requests and for each category, the best ones, histograms."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from batchspec.replay.ratios import SPEEDUP
from batchspec.report.layout import ABSENT, Column, Paragraph, Part, Table, Tone, count, decimal, printable

__all__ = ["replay_parts"]

Summary = Mapping[str, Any]

_ALL = "(all)"
_RATIOS = {
    "mean_acceptance_length": "acceptance length",
    "draft_acceptance_rate": "acceptance rate",
    "steps_saved": "steps saved",
    SPEEDUP: "predicted speed-up",
}
_CRITERIA = {SPEEDUP: "predicted speed-up", "tokens_per_decode_step": "tokens per decode step"}
_PERCENT = ("draft_acceptance_rate", "steps_saved")


def replay_parts(document: Mapping[str, Any], *, histograms: bool) -> Iterator[Part]:
    """Yield the parts of what ``replay_logs`` returned, top to bottom.

    Args:
        document: see ``replay_document``.
        histograms: whether to show the accepted tokens of the steps.
    """
    yield Paragraph(text="\n".join(_about(document["replayed"])))
    yield from _doubts(document["replayed"])
    definitions = document["definitions"]
    yield _grid(document["all"], title="Replay, all requests", notes=_notes(document))
    for name, summary in document["categories"].items():
        requests = count(summary["num_requests"])
        yield _grid(summary, title=f"Replay, category {printable(name)} ({requests} requests)", notes=())
    yield from _best(document)
    if histograms:
        for method, cells in groupby(document["all"]["cells"], key=lambda cell: str(cell["method"])):
            yield _histogram(method, list(cells), note=definitions["acceptance_histogram"])


def _about(replayed: Mapping[str, Any]) -> Iterator[str]:
    requests, outputs = count(replayed["num_requests"]), count(replayed["num_sequences"])
    yield f"Replayed: {requests} requests with {outputs} outputs"
    in_prompts, in_outputs = count(replayed["num_prompt_tokens"]), count(replayed["num_output_tokens"])
    yield f"Tokens: {in_prompts} in prompts, {in_outputs} in outputs"
    for cause, rows in replayed["left_out"].items():
        more = rows["num_rows"] - len(rows["named"])
        names = ", ".join(map(printable, rows["named"])) + (f" and {count(more)} more" if more else "")
        yield f"Left out, {cause}: {count(rows['num_rows'])} ({names}): {rows['remedy']}"


def _doubts(replayed: Mapping[str, Any]) -> Iterator[Part]:
    """Yield what makes the numbers less than exact."""
    if replayed["num_retokenised_requests"]:
        number = count(replayed["num_retokenised_requests"])
        yield Paragraph(
            text=f"NOT exact: the token ids of {number} requests were made from texts, which the model may have spelt "
            "otherwise.",
            tone=Tone.BAD,
        )
    if replayed["num_requests_with_grammar"]:
        number = count(replayed["num_requests_with_grammar"])
        yield Paragraph(
            text=f"{number} requests had a grammar, which cuts drafts in a run: accepted tokens are exact, but fewer "
            "may be drafted, in fewer steps."
        )
    for job in replayed["jobs"]:
        if job["has_indices"] is False:
            yield Paragraph(
                text=f"{printable(job['path'])} does not tell every request's place in the input: the suffix drafter "
                "learnt in the order of the lines."
            )


def _grid(summary: Summary, *, title: str, notes: tuple[str, ...]) -> Table:
    names = [name for name in _RATIOS if name in summary["cells"][0]["pooled"]]
    return Table(
        title=title,
        columns=(
            Column(header="drafter", is_text=True),
            Column(header="k"),
            *(Column(header=_RATIOS[name]) for name in names),
        ),
        rows=tuple(
            (
                cell["method"],
                str(cell["num_spec_tokens"]),
                *(_ranged(name, cell["pooled"][name], cell["intervals"][name]) for name in names),
            )
            for cell in summary["cells"]
        ),
        notes=notes,
    )


def _ranged(name: str, value: float | None, interval: Sequence[float] | None) -> str:
    """Return a value with its interval."""
    if value is None or interval is None:
        return _shown(name, value)
    low, high = (_shown(name, end).removesuffix(" %") for end in interval)
    return f"{_shown(name, value)} ({low} to {high})"


def _shown(name: str, value: float | None) -> str:
    if name in _PERCENT and value is not None:
        return f"{decimal(100 * value, digits=1)} %"
    return decimal(None if value is None else round(value, 2) + 0.0, digits=2)  # no -0.00


def _notes(document: Mapping[str, Any]) -> tuple[str, ...]:
    definitions, bootstrap, cells = document["definitions"], document["bootstrap"], document["all"]["cells"]
    notes = [f"{label}: {definitions[name]}" for name, label in _RATIOS.items() if name in cells[0]["pooled"]]
    notes.append(
        f"in brackets: {definitions['interval']}, {count(bootstrap['num_draws'])} draws, seed {bootstrap['seed']}"
    )
    undecided = max(cell["pooled"]["num_undecided_tokens"] for cell in cells)
    if undecided:
        notes.append(f"at most {count(undecided)} draft tokens are undecided, behind the end of what was recorded")
    if document["costs"] is not None:
        job = document["replayed"]["jobs"][0]
        notes.append(
            f"step costs: {printable(document['costs']['origin'])}; batch of {count(job['max_num_seqs'])}, at most "
            f"{count(job['max_num_batched_tokens'])} tokens a step"
        )
    return tuple(notes)


def _best(document: Mapping[str, Any]) -> Iterator[Part]:
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


def _best_row(name: str, summary: Summary) -> tuple[str, ...]:
    best, rival = summary["best"], summary["best"]["next"]
    criterion = best["criterion"]
    return (
        name,
        count(summary["num_requests"]),
        _setting(best),
        _ranged(criterion, best["value"], best["interval"]),
        _share(best["share_of_draws"]),
        "" if rival is None else _setting(rival),
        "" if rival is None else _ranged(criterion, rival["difference"], rival["interval"]),
    )


def _share(fraction: float | None) -> str:
    return ABSENT if fraction is None else f"{100 * fraction:.0f} %"


def _setting(named: Mapping[str, Any]) -> str:
    return f"{named['method']}, {named['num_spec_tokens']}"


def _histogram(method: str, cells: Sequence[Mapping[str, Any]], *, note: str) -> Table:
    """Return how many steps accepted how many draft tokens, a column for each draft length."""
    histograms = [cell["pooled"]["acceptance_histogram"] for cell in cells]
    return Table(
        title=f"Steps by accepted draft tokens, {method}",
        columns=(
            Column(header="accepted"),
            *(Column(header=f"k = {cell['num_spec_tokens']}") for cell in cells),
        ),
        rows=tuple(
            (str(j), *(count(histogram[j]) if j < len(histogram) else "" for histogram in histograms))
            for j in range(max(map(len, histograms)))
        ),
        notes=(note,),
    )
