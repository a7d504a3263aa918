"""From the document of a benchmark to the tables that both renderings show."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.bench.tables_of_drafters import drafters_parts
from batchspec.bench.tables_of_steps import overhead_parts, steps_parts
from batchspec.bench.wording import gigabytes, milliseconds, ranged, times
from batchspec.report.layout import Column, Paragraph, Part, Table, Tone, count, decimal, printable

__all__ = ["bench_parts"]

_NAMED = "engine"


def bench_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of the benchmark's report, top to bottom."""
    yield from _summary(document)
    if document["steps"] is not None:
        yield from steps_parts(document["steps"])
    if document["overhead"] is not None:
        yield from overhead_parts(document["overhead"])
    for size in document["throughput"] or []:
        yield from _throughput(size)
    if document["prefix"] is not None:
        yield _prefix(document["prefix"])
    if document["start"] is not None:
        yield _first_token(document["start"]["first_token"])
        yield _memory(document["start"]["memory"])
    if document["drafters"] is not None:
        yield from drafters_parts(document["drafters"])


def _summary(document: Mapping[str, Any]) -> Iterator[Part]:
    model, machine, prompts = document["model"], document["machine"], document["prompts"]
    yield Paragraph(
        text=f"model {printable(model['name'])} · {model['dtype']} on {model['device']} · "
        f"layers by {model['implementation']}{_drafts(document)}",
        tone=Tone.QUIET,
    )
    lines = [
        f"Machine: {printable(machine['processor'])}, {count(machine['num_cores'])} cores, "
        f"{count(machine['num_threads'])} threads used, {machine['capability']}, torch {machine['torch']}",
        f"Copying memory: {ranged(machine['copy']['bytes_per_second'], gigabytes)} GB/s, read and written together",
        f"Prompts: {count(prompts['num_prompts'])} from {printable(prompts['input'])}; "
        f"{count(prompts['num_left_out'])} left out, {count(prompts['num_cut'])} cut to the context, "
        f"{count(prompts['num_plain'])} chats as plain text",
        f"Every number: the median of {count(document['settings']['rounds'])} rounds and the range they lie in; "
        "who is compared takes turns; every ratio is taken within a round.",
        *_interrupted(document["interrupted"]),
    ]
    yield Paragraph(text="\n".join(lines))


def _interrupted(interrupted: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what is missing of a benchmark that a signal ended."""
    if interrupted is not None:
        rounds = interrupted["num_rounds"]
        kept = f"the last numbers are those of {count(rounds)} rounds, and " if rounds else ""
        yield f"INTERRUPTED: {kept}what would follow is missing."


def _drafts(document: Mapping[str, Any]) -> str:
    """Return who drafts in the parts that have one drafter; nothing where drafters were compared and that is all."""
    if all(document[part] is None for part in ("steps", "overhead", "throughput", "prefix", "start")):
        return ""
    speculative = document["settings"]["speculative"]
    k = speculative.get("num_speculative_tokens")
    return f" · drafts by {speculative['method']}" + ("" if k is None else f", k {k}")


def _throughput(size: Mapping[str, Any]) -> Iterator[Part]:
    names = list(size["engines"])
    ours = [name for name in names if size["engines"][name]["counts"] is not None and ", detailed" not in name]
    found = {(ratio["engine"], ratio["over"]): ratio for ratio in size["ratios"]}
    columns = (
        Column(header="engine", is_text=True),
        Column(header="output tokens per second"),
        *(Column(header=f"{name} is faster by", detail="") for name in ours),
    )
    rows = tuple(
        (
            name,
            ranged(size["engines"][name]["tokens_per_second"], lambda rate: decimal(rate, digits=1)),
            *("" if one == name else ranged(found[one, name]["tokens_per_second"], times) for one in ours),
        )
        for name in names
    )
    yield Table(
        title=f"Throughput, {count(size['max_num_seqs'])} sequences at a time",
        columns=columns,
        rows=rows,
        notes=(
            f"{count(size['num_prompts'])} prompts, {count(size['prompt_tokens'])} tokens in them, "
            f"{count(size['max_tokens'])} generated for each: greedily, past the end of sequence",
            "counted: output tokens over the seconds from the first prompt handed over to the last answer; "
            "loading and warming up left out",
            *_cost_of_detail(names, found),
        ),
    )


def _cost_of_detail(names: list[str], found: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[str]:
    """Yield what detailed metrics cost, on the clock and in processor time, which other work disturbs less."""
    for name in names:
        plain = name.removesuffix(", detailed")
        if plain != name:
            ratio = found[plain, name]
            cpu = found[name, plain]["cpu_seconds"]
            shown = ranged(ratio["tokens_per_second"], times)
            yield f"detailed metrics: {shown} in time, {ranged(cpu, times) if cpu else 'unknown'} in processor time"


def _prefix(prefix: Mapping[str, Any]) -> Part:
    return Table(
        title="Prefix caching",
        columns=(
            Column(header="prefix caching", is_text=True),
            Column(header="prompt tokens computed"),
            Column(header="seconds"),
        ),
        rows=tuple(
            (name, count(prefix[key]["prefill_tokens"]), decimal(prefix[key]["seconds"], digits=2))
            for name, key in (("on", "with"), ("off", "without"))
        ),
        notes=(
            f"{count(prefix['num_requests'])} requests that share their first {count(prefix['header_tokens'])} tokens",
            f"{times(prefix['work_ratio'])} less to compute; "
            + ("the texts are identical" if prefix["is_identical"] else "THE TEXTS DIFFER"),
        ),
    )


def _first_token(first: Mapping[str, Any]) -> Part:
    rows = [
        ("command to first record", ranged(first["first_record_seconds"], milliseconds)),
        *(
            (f"· {name.replace('_', ' ')}", ranged(spread, milliseconds))
            for name, spread in first["steps_seconds"].items()
        ),
    ]
    return Table(
        title="First token",
        columns=(Column(header="from", is_text=True), Column(header="milliseconds")),
        rows=tuple(rows),
        notes=(
            "batchspec run on one prompt and one token, until its record stands in the file",
            "the steps are timed in a process of their own, without the command's input and run directory",
        ),
    )


def _memory(memory: Mapping[str, Any]) -> Part:
    rows = tuple(
        (name, decimal(memory[key] / 1e6, digits=0))
        for name, key in (
            ("peak", "peak_bytes"),
            ("weights", "weight_bytes"),
            ("key-value cache, as large as the job can need", "kv_cache_bytes"),
            ("everything else", "other_bytes"),
        )
    )
    return Table(
        title="Memory",
        columns=(Column(header="what", is_text=True), Column(header="MB")),
        rows=rows,
        notes=(f"batchspec run with {count(memory['max_num_seqs'])} sequences; the most that was resident at a time",),
    )
