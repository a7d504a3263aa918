"""A replay as tables: every setting for all requests and for each category, the best ones, histograms."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from batchspec.replay.best import best_parts
from batchspec.replay.cells import ranged
from batchspec.replay.ratios import SPEEDUP
from batchspec.report.layout import Column, Paragraph, Part, Table, Tone, count, printable

__all__ = ["replay_parts"]

Summary = Mapping[str, Any]

_RATIOS = {
    "mean_acceptance_length": "acceptance length",
    "draft_acceptance_rate": "acceptance rate",
    "steps_saved": "steps saved",
    SPEEDUP: "predicted speed-up",
}


def replay_parts(document: Mapping[str, Any], *, histograms: bool) -> Iterator[Part]:
    """Yield the parts of what ``replay_logs`` returned, top to bottom.

    Args:
        document: see ``replay_document``.
        histograms: whether to show the accepted tokens of the steps.
    """
    yield Paragraph(text="\n".join(_about(document["replayed"])))
    yield from _doubts(document)
    definitions = document["definitions"]
    yield _grid(document["all"], title="Replay, all requests", notes=_notes(document))
    for name, summary in document["categories"].items():
        requests = count(summary["num_requests"])
        yield _grid(summary, title=f"Replay, category {printable(name)} ({requests} requests)", notes=())
    yield from best_parts(document)
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


def _doubts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield what makes the numbers less than exact."""
    replayed = document["replayed"]
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
    if any(setting["method"] == "suffix" for setting in document["settings"]):
        yield from _doubts_of_suffix(replayed)


def _doubts_of_suffix(replayed: Mapping[str, Any]) -> Iterator[Part]:
    for job in replayed["jobs"]:
        if job["has_indices"] is False:
            yield Paragraph(
                text=f"{printable(job['path'])} does not tell every request's place in the input: the suffix drafter "
                "learnt in the order of the lines."
            )
    if replayed["num_rows_left_out"]:
        yield Paragraph(
            text="A run's suffix drafter learns from every answer. Here it could not learn from the rows that are left "
            "out, so that its numbers may differ from a run's."
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
                *(ranged(name, cell["pooled"][name], cell["intervals"][name]) for name in names),
            )
            for cell in summary["cells"]
        ),
        notes=notes,
    )


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
        sizes = {(job["max_num_seqs"], job["max_num_batched_tokens"]) for job in document["replayed"]["jobs"]}
        batches = ", ".join(
            f"batch of {count(seqs)} in steps of {count(tokens)} tokens" for seqs, tokens in sorted(sizes)
        )
        notes.append(f"step costs: {printable(document['costs']['origin'])}; {batches}")
    return tuple(notes)


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
