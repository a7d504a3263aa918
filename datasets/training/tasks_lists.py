"""Exercises that continue a list."""

from __future__ import annotations

import zlib
from random import Random

from datasets.training import words as w
from datasets.training.pools import HELD_OUT_SHARE, Pools
from datasets.training.task import Task

LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
ASKS = (
    "Continue the list with the next {n} entries:",
    "Continue this list with {n} more entries.",
    "What are the next {n} entries?",
    "Write the next {n} items of the list:",
    "Give the next {n} terms:",
)


def _cycle(rng: Random, values: tuple[str, ...], total: int) -> list[str]:
    start = rng.randrange(len(values))
    return [values[(start + i) % len(values)] for i in range(total)]


def _steps(rng: Random, total: int) -> list[str]:
    step = rng.choice((1, 1, 2, 2, 3, 4, 5, 5, 10, 10, 20, 25, 50, 100))
    start = rng.randrange(0, 100) if rng.random() < 0.6 else step * rng.randrange(1, 12)
    return [str(start + i * step) for i in range(total)]


def _down(rng: Random, total: int) -> list[str]:
    step = rng.choice((1, 1, 2, 5, 10))
    start = step * total + rng.randrange(0, 60)
    return [str(start - i * step) for i in range(total)]


def _pattern(p: Pools, total: int) -> list[str]:
    pool = p.pick(("colour", "name", "city"))
    size = p.rng.choice((2, 3))
    if pool == "colour":
        cycle = p.rng.sample(w.COLOURS, size)
    else:
        cycle = [p.person() if pool == "name" else p.city() for _ in range(size)]
    return [cycle[i % size] for i in range(total)]


def _labelled(p: Pools, total: int) -> list[str]:
    stem = p.pick(("Step", "Room", "Page", "Day", "Chapter", "Item", "Box", "Team", "Table"))
    start = p.rng.randrange(1, 60)
    return [f"{stem} {start + i}" for i in range(total)]


def _powers(rng: Random, total: int) -> list[str]:
    start = rng.choice((1, 2, 3, 5))
    return [str(start * 2**i) for i in range(total)]


def _entries(p: Pools, total: int) -> list[str]:
    rng = p.rng
    roll = rng.random()
    if roll < 0.12:
        return _cycle(rng, w.DAYS, total)
    if roll < 0.24:
        return _cycle(rng, w.MONTHS, total)
    if roll < 0.34:
        letters = LETTERS if rng.random() < 0.6 else tuple(x.lower() for x in LETTERS)
        return _cycle(rng, letters, total)
    if roll < 0.62:
        return _steps(rng, total)
    if roll < 0.72:
        return _down(rng, total)
    if roll < 0.87:
        return _pattern(p, total)
    return _labelled(p, total) if roll < 0.96 else _powers(rng, total)


def in_split(p: Pools, text: str) -> bool:
    """Tell whether a list belongs to the split that is drawn from."""
    held_out = zlib.crc32(text.encode()) % HELD_OUT_SHARE == 0
    return held_out == (p.split == "heldout")


def continue_list(p: Pools) -> Task:
    """First entries of a list to the entries that follow."""
    while True:
        given, more = p.rng.choice((3, 4, 5, 6)), p.rng.choice((2, 3, 3, 4, 5, 6))
        entries = _entries(p, given + more)
        joint = p.pick((", ", ", ", "\n"))
        shown = joint.join(entries[:given])
        if in_split(p, ", ".join(entries[:given])):
            break
    numeral = p.pick((str(more), ("two", "three", "four", "five", "six")[more - 2]))
    ask = p.pick(ASKS).format(n=numeral)
    return Task("list", ask, shown, joint.join(entries[given:]), ("List", f"Next {more}"))
