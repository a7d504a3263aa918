"""A small job in which everything happens: preemption, speculation, samples, streams, stops, lines that are wrong."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["NUM_ROWS", "SHAPES", "Shape", "rows", "write_input"]

NUM_ROWS = 60
_HEADER = "List the days of the week: Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday. Monday,"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A way to run the job.

    Attributes:
        name: in reports.
        flags: of the command, beside input and run directory.
        suffix: of ``--output``; empty for none.
    """

    name: str
    flags: tuple[str, ...]
    suffix: str = ""


# 14 pages of 16 tokens: a sequence may need 8 of them, so that eight at once are put back again and again.
_TIGHT: tuple[str, ...] = ("--level", "detailed", "--device", "cpu", "--max-num-seqs", "8", "--max-model-len", "128")
_TIGHT += ("--kv-cache-memory", "900KiB")
SHAPES = (
    Shape(name="n-grams, JSONL", flags=_TIGHT, suffix=".jsonl"),
    Shape(name="n-grams, Parquet", flags=_TIGHT, suffix=".parquet"),
    Shape(name="suffix, Parquet", flags=(*_TIGHT, "--method", "suffix"), suffix=".parquet"),
    Shape(name="draft model, as they are done", flags=(*_TIGHT, "--method", "draft_model", "--order", "completion")),
)


def rows(*, seed: int = 0, number: int = NUM_ROWS) -> list[str]:
    """Return the lines of the input: mostly short requests, every seventh wrong in one way or another."""
    dice = random.Random(seed)
    return [_wrong(index) if index % 7 == 3 else json.dumps(_row(index, dice)) for index in range(number)]


def write_input(path: Path, *, seed: int = 0, number: int = NUM_ROWS) -> Path:
    """Write the input and return its path."""
    path.write_text("".join(f"{row}\n" for row in rows(seed=seed, number=number)))
    return path


def _row(index: int, dice: random.Random) -> dict[str, Any]:
    body: dict[str, Any] = {
        "prompt": _HEADER + " Tuesday," * (index % 4),
        "max_tokens": dice.randint(4, 28),
        "temperature": dice.choice([0, 0, 0.8]),
        "ignore_eos": dice.random() < 0.8,
    }
    if index % 6 == 4:
        body["n"] = 2
    if index % 9 == 5:
        body |= {"stream": True} | ({"stream_options": {"include_usage": True}} if index % 2 else {})
    if index % 5 == 1:
        body["stop"] = ["day, T", "urs"]
    if index % 8 == 6:
        body["repetition_penalty"] = 1.1
    row = {"custom_id": f"row-{index}", "method": "POST", "url": "/v1/completions", "body": body}
    return row | ({"category": f"c{index % 3}"} if index % 2 else {})


def _wrong(index: int) -> str:
    """Return a line that cannot be served: no JSON, a wrong value, a prompt that never fits, an id used before."""
    return [
        '{"custom_id": "torn", "prompt": "M',
        json.dumps({"custom_id": f"row-{index}", "prompt": "a", "temperature": 9}),
        json.dumps({"custom_id": f"row-{index}", "prompt": "Monday " * 400}),
        json.dumps({"custom_id": "row-0", "prompt": "a"}),
    ][index % 4]
