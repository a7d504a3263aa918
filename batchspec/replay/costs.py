"""What a step takes by its rows and the context of its sequences: from ``batchspec bench``, or a straight line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from batchspec.errors import UsageError

__all__ = ["CostTable", "read_costs"]

_NUMBER = r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*"
_LINE = re.compile(f"{_NUMBER},{_NUMBER}")
_MOST_SECONDS = 1e6
_SHAPES = "two numbers of seconds A,B (of a step, of a row of it) like 0.02,0.0005, or a bench.json with steps"


@dataclass(frozen=True, kw_only=True)
class CostTable:
    """Seconds of a step.

    Attributes:
        rows: float64 (r,), sizes of the forward pass, ascending; at least two.
        contexts: float64 (c,), tokens before each row, ascending; at least one.
        seconds: float64 (c, r). Between them on a line; beyond the largest size on the last one, as far as it rises.
        origin: where they are from, for whoever reads the result.
    """

    rows: NDArray[np.float64]
    contexts: NDArray[np.float64]
    seconds: NDArray[np.float64]
    origin: str

    def document(self) -> dict[str, Any]:
        """Return the table for JSON."""
        return {
            "origin": self.origin,
            "rows": self.rows.tolist(),
            "contexts": self.contexts.tolist(),
            "seconds": self.seconds.tolist(),
        }


def read_costs(text: str) -> CostTable:
    """Return the costs that two numbers give (seconds of any step, seconds of a row), or a file of ``batchspec bench``.

    Args:
        text: ``A,B``, a bench.json, or the directory of one.

    Raises:
        UsageError: it is none of these, or says too little.
    """
    match = _LINE.fullmatch(text)
    if match is None:
        return _from_bench(Path(text) / "bench.json" if Path(text).is_dir() else Path(text))
    fixed, per_row = float(match[1]), float(match[2])
    if not 0 < fixed + per_row < _MOST_SECONDS:
        raise UsageError(f"--cost {text}: a step takes some time, and less than {_MOST_SECONDS:g} s; give {_SHAPES}.")
    return CostTable(
        rows=np.array([0.0, 1.0]),
        contexts=np.zeros(1),
        seconds=np.array([[fixed, fixed + per_row]]),
        origin=f"{fixed:g} s + {per_row:g} s a row",
    )


def _from_bench(path: Path) -> CostTable:
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        is_number = re.fullmatch(_NUMBER, str(path)) is not None
        fault = "is a single number" if is_number else f"cannot be read ({error.strerror or error})"
        raise UsageError(f"--cost {path} {fault}: give {_SHAPES}.") from error
    except orjson.JSONDecodeError as error:
        raise UsageError(f"--cost {path} is not JSON: give {_SHAPES}.") from error
    try:
        sizes: dict[tuple[float, float], list[float]] = {}
        for cell in document["steps"]["cells"]:
            sizes.setdefault((float(cell["context"]), float(cell["rows"])), []).append(_seconds(cell))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"--cost {path} has no step times: make it with batchspec bench --only steps.") from error
    contexts, rows = sorted({context for context, _ in sizes}), sorted({size for _, size in sizes})
    if len(rows) < 2 or len(sizes) < len(contexts) * len(rows):
        raise UsageError(
            f"--cost {path} has step times of too few sizes: make it with batchspec bench --only steps --rows 1,16,64."
        )
    seconds = [[sum(sizes[context, size]) / len(sizes[context, size]) for size in rows] for context in contexts]
    return CostTable(rows=np.array(rows), contexts=np.array(contexts), seconds=np.array(seconds), origin=str(path))


def _seconds(cell: Mapping[str, Any]) -> float:
    """Return the median time of the forward pass, and of choosing and comparing tokens; ValueError for none."""
    seconds = float(cell["forward_seconds"]["median"]) + float(cell["judge_seconds"]["median"])
    if not 0 < seconds < _MOST_SECONDS:
        raise ValueError(seconds)
    return seconds
