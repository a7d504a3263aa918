"""The tables about single steps: the cost table, and what is spent outside the model."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.bench.wording import milliseconds, percent, ranged, times
from batchspec.report.layout import Column, Part, Table, count

__all__ = ["overhead_parts", "steps_parts"]


def steps_parts(steps: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the cost table and the ways to multiply that its floor is made of."""
    yield Table(
        title="Step time in milliseconds",
        columns=(
            Column(header="rows"),
            Column(header="rows per sequence"),
            Column(header="context"),
            Column(header="forward"),
            Column(header="judge"),
            Column(header="floor"),
            Column(header="step over floor"),
        ),
        rows=tuple(
            (
                count(cell["rows"]),
                count(cell["rows_per_sequence"]),
                count(cell["context"]),
                ranged(cell["forward_seconds"], milliseconds),
                milliseconds(cell["judge_seconds"]["median"]),
                milliseconds(cell["matmul_seconds"]["median"] + cell["kv_seconds"]),
                ranged(cell["over_floor"], times),
            )
            for cell in steps["cells"]
        ),
        notes=(
            "forward: the packed pass; judge: choosing every row's token and comparing the drafts",
            "floor: the matrix products of the model's linear layers, each the fastest way this machine has for its "
            "shape, and the keys and values of every sequence at the speed of a copy",
        ),
    )
    yield Table(
        title="Matrix products",
        columns=(
            Column(header="rows"),
            Column(header="shape", is_text=True),
            Column(header="layers"),
            Column(header="fastest", is_text=True),
            Column(header="milliseconds a layer"),
        ),
        rows=tuple(
            (
                rows,
                f"{way['k']} → {way['n']}",
                count(way["count"]),
                way["fastest"],
                milliseconds(way["seconds"][way["fastest"]]),
            )
            for rows, ways in steps["matmuls"].items()
            for way in ways
        ),
        notes=("packed float16 multiplies in float32, with weights that were stored in 16 bits as they are",),
    )


def overhead_parts(overhead: Mapping[str, Any]) -> Iterator[Part]:
    """Yield where a step's time goes."""
    modes = overhead["modes"]
    stations = dict.fromkeys(name for mode in modes.values() for name in mode["seconds_by_station"])
    yield Table(
        title=f"A step's time, {count(overhead['max_num_seqs'])} sequences at a time",
        columns=(
            Column(header="milliseconds a step", is_text=True),
            *(Column(header=f"drafts: {name}") for name in modes),
        ),
        rows=(
            *(
                (station, *(ranged(mode["seconds_by_station"][station], milliseconds) for mode in modes.values()))
                for station in stations
            ),
            ("whole step", *(ranged(mode["step_seconds"], milliseconds) for mode in modes.values())),
            ("outside the model", *(ranged(mode["outside_share"], percent) for mode in modes.values())),
        ),
        notes=(
            "forward is the model; verify chooses and compares tokens, account feeds counters, records takes requests "
            "in and makes records, write puts them into the journal",
        ),
    )
