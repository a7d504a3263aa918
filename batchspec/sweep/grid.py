"""From the text of a grid to its points: every combination of the values, each setting once."""

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig
from batchspec.drafting.config import METHODS
from batchspec.errors import UsageError
from batchspec.job.settings import parse_speculative
from batchspec.settings import EngineSettings
from batchspec.sweep.keys import KEYS, find_key, written

__all__ = ["Point", "parse_grids"]

_MOST_POINTS = 1000
_EXAMPLE = "'method=none,ngram k=1,3,5 max_num_seqs=1,32'"

Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Point:
    """One setting of the grid.

    Attributes:
        values: by key, what the grid says and what means something to the method.
        engine: the settings that this comes to.
    """

    values: Mapping[str, Any]
    engine: EngineSettings

    @property
    def name(self) -> str:
        """The point as a grid of its own."""
        return " ".join(shlex.quote(f"{key}={written(value)}") for key, value in self.values.items())

    @property
    def is_drafting(self) -> bool:
        """Whether it speculates at all."""
        return self.engine.speculative.method != "none"


def parse_grids(texts: Sequence[str], base: EngineSettings) -> tuple[Point, ...]:
    """Return the points of one grid after another; those that come to the same settings are one.

    Args:
        texts: grids such as ``method=none,ngram k=1,3 max_num_seqs=1,32``; the last key changes fastest.
        base: the settings that the grids do not name.

    Raises:
        UsageError: a text is no grid, or a point of it cannot work.
    """
    grids = [_parse(text) for text in texts]
    size = sum(math.prod(map(len, grid.values())) for grid in grids)
    if size > _MOST_POINTS:
        raise UsageError(f"--grid has {size:,} combinations: give at most {_MOST_POINTS:,}.")
    points: dict[EngineSettings, Point] = {}
    for grid in grids:
        for point in _points(grid, base):
            points.setdefault(point.engine, point)
    return tuple(points.values())


def _parse(text: str) -> Grid:
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--grid {text!r} cannot be read ({error}): write it like {_EXAMPLE}.") from None
    grid: dict[str, Sequence[Any]] = {}
    for part in parts:
        name, sign, values = part.partition("=")
        if not sign or not name:
            raise UsageError(f"--grid: {part!r} is no key with values; write it like {_EXAMPLE}.")
        key = find_key(name)
        if key.name in grid:
            raise UsageError(f"--grid names {key.name} twice: put its values into one list.")
        grid[key.name] = key.values(values)
    if not grid:
        raise UsageError(f"--grid is empty: write it like {_EXAMPLE}.")
    return {"method": ["ngram"]} | grid


def _points(grid: Grid, base: EngineSettings) -> Iterator[Point]:
    """Yield the points, some perhaps more than once."""
    heeded = {name: _methods_for(name, grid["method"]) for name in grid}
    for name in grid:
        if not heeded[name]:
            methods = ", ".join(_methods_for(name, METHODS))
            given = ", ".join(grid["method"])
            raise UsageError(f"--grid: {name} means nothing to the method {given}; it is for {methods}.")
    for combination in product(*grid.values()):
        values = dict(zip(grid, combination, strict=True))
        yield _point({name: value for name, value in values.items() if values["method"] in heeded[name]}, base)


def _methods_for(name: str, methods: Iterable[str]) -> list[str]:
    """Return the methods to which a key means something."""
    key = KEYS[name]
    return [method for method in methods if key.is_of_engine or key.target in SpeculativeConfig(method=method).keys]


def _point(values: Mapping[str, Any], base: EngineSettings) -> Point:
    settings = {KEYS[name].target: value for name, value in values.items() if KEYS[name].is_of_engine}
    drafter = {KEYS[name].target: value for name, value in values.items() if not KEYS[name].is_of_engine}
    point = Point(values=values, engine=base)
    try:
        level = Level.NONE if values["method"] == "none" else base.level
        engine = replace(base, speculative=parse_speculative(None, drafter), level=level, **settings)
        engine.check()
    except UsageError as error:
        raise UsageError(f"--grid, at {point.name}: {error}") from None
    return replace(point, engine=engine)
