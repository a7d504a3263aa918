"""The comparison of a sweep's runs as one JSON document: what ``sweep.json`` holds and ``--json`` prints."""

from collections.abc import Sequence
from typing import Any

from batchspec.report.definitions import DEFINITIONS
from batchspec.sweep.opening import OpenedSweep
from batchspec.sweep.outputs import RunOutputs, compare_outputs
from batchspec.sweep.points import is_timed, point_documents
from batchspec.sweep.running import PointResult

__all__ = ["sweep_document"]

_DEFINED = ("pooled", "mean_acceptance_length", "tokens_per_decode_step", "draft_acceptance_rate")
_SPEEDUP = "output tokens per second over the baseline's; without loading the model, one run each"


def sweep_document(opened: OpenedSweep, results: Sequence[PointResult]) -> dict[str, Any]:
    """Read the runs' outputs once more and return the comparison.

    Args:
        opened: the sweep, all points of which were run.
        results: what became of each.

    Raises:
        UsageError: responses cannot be read.
    """
    settings = opened.settings
    points = point_documents(opened, results)
    rates = {point["point"]: point["throughput"]["output_tokens_per_second"] for point in points if is_timed(point)}
    return {
        "sweep": {
            "model": opened.model["name"],
            "input": settings.job.input,
            "run_dir": str(opened.state.directory),
            **settings.parameters(),
            "resolved": opened.state.manifest["resolved"],
        },
        "points": points,
        "fastest": max(rates, key=lambda name: rates[name]) if rates else None,
        "outputs": _outputs(opened, [result.report is not None for result in results]),
        "definitions": {name: DEFINITIONS[name] for name in _DEFINED} | {"speedup": _SPEEDUP},
    }


def _outputs(opened: OpenedSweep, has_run: Sequence[bool]) -> dict[str, Any]:
    """Return the runs' outputs beside those of the first."""
    names = [point.name for point in opened.settings.points]
    directories = [opened.state.directory / name for name in opened.settings.directories]
    runs = [
        (name, directory) for name, directory, is_there in zip(names, directories, has_run, strict=True) if is_there
    ]
    compared = {name: compare_outputs(runs[0][1], directory) for name, directory in runs[1:]}
    different = [(name, found) for name, found in compared.items() if found.first is not None]
    return {
        "a": runs[0][0] if runs else None,
        "num_points": len(runs),
        "is_identical": not different if compared else None,
        "points": {name: _counts(found) for name, found in compared.items()},
        "first_difference": _first(runs[0][0], *different[0]) if different else None,
    }


def _counts(found: RunOutputs) -> dict[str, int]:
    return {
        "num_compared": found.num_compared,
        "num_with_token_ids": found.num_with_token_ids,
        "num_different": found.num_different,
    }


def _first(a: str, b: str, found: RunOutputs) -> dict[str, Any] | None:
    return None if found.first is None else {"a": a, "b": b, **found.first.document()}
