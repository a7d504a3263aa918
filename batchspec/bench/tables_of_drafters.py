"""The tables that compare drafters."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.bench.wording import ranged
from batchspec.report.layout import Column, Part, Table, count, decimal

__all__ = ["drafters_parts"]


def drafters_parts(drafters: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the comparison and, beneath it, what became of the drafts."""
    rows = [(size["max_num_seqs"], name, row) for size in drafters["sizes"] for name, row in size["rows"].items()]
    yield Table(
        title="Drafters",
        columns=(
            Column(header="batch"),
            Column(header="drafter", is_text=True),
            Column(header="tokens per second"),
            Column(header="over none"),
            Column(header="over the best fixed"),
            Column(header="accepted per draft"),
            Column(header="tokens per step"),
        ),
        rows=tuple(
            (
                count(size),
                name,
                ranged(row["tokens_per_second"], lambda rate: decimal(rate, digits=0)),
                ranged(row["over_none"], _ratio),
                ranged(row["over_best_fixed"], _ratio),
                decimal(row["accepted_per_draft"], digits=2),
                decimal(row["tokens_per_decode_step"], digits=2),
            )
            for size, name, row in rows
        ),
        notes=tuple(_notes(drafters)),
    )
    yield Table(
        title="What became of the drafts",
        columns=(
            Column(header="batch"),
            Column(header="drafter", is_text=True),
            Column(header="k"),
            Column(header="decode steps"),
            Column(header="drafts"),
            Column(header="drafted"),
            Column(header="accepted"),
            Column(header="accepted, by source", is_text=True),
        ),
        rows=tuple((count(size), name, *_counts(row)) for size, name, row in rows),
        notes=(
            "decode steps: of every sequence behind its first token, with a draft or without; drafts: those with one",
            "the last round's; of drafters that are not adaptive all rounds count the same",
        ),
    )


def _ratio(number: float) -> str:
    return decimal(number, digits=2)


def _counts(row: Mapping[str, Any]) -> Iterator[str]:
    yield count(row["num_speculative_tokens"])
    for name in ("num_decode_steps", "num_drafts", "num_draft_tokens", "num_accepted_draft_tokens"):
        yield count(row["counts"][name])
    yield ", ".join(f"{name} {count(number)}" for name, number in row["accepted_by_source"].items())


def _notes(drafters: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"{count(drafters['num_requests'])} requests as they are, with their own lengths, temperatures and stops; "
        f"{count(drafters['num_left_out'])} lines left out"
    )
    yield (
        "batch: the most sequences at a time; tokens per second: of output; accepted per draft: in the mean step that "
        "had one; tokens per step: what reached the output, after the first token, over all decode steps"
    )
    yield (
        "the best fixed: of those that do not adapt, are given the same prompts and know no more, the one with the "
        "highest median (a draft model is known to auto only where --draft-model is given); making the engine, and "
        "reading earlier answers, is left out of the time"
    )
    if any(row["is_recalling"] for size in drafters["sizes"] for row in size["rows"].values()):
        yield (
            "recall: from a run of the same file without drafts, with one word changed in "
            f"{count(drafters['num_changed'])} prompts (the last of a chat, the last but one of a plain prompt, for "
            "the next request's); unchanged: the same file again"
        )
    yield from drafters["remarks"]
    yield (
        "the answers are identical, token by token, for all drafters and sizes"
        if drafters["is_identical"]
        else "SOME ANSWERS DIFFER, which in dtypes below float32 the batch can bring about"
    )
