"""The comparison of a sweep's runs as one JSON document: what ``sweep.json`` holds and ``--json`` prints."""

from collections.abc import Mapping, Sequence
from typing import Any

from batchspec.report.definitions import DEFINITIONS
from batchspec.sweep.grid import Point
from batchspec.sweep.opening import OpenedSweep
from batchspec.sweep.outputs import RunOutputs, compare_outputs
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
    settings, manifest = opened.settings, opened.state.manifest
    reports = [result.outcome.report if result.outcome is not None else None for result in results]
    baselines = [_baseline(point, settings.points) for point in settings.points]
    was_interrupted = [name in opened.resumed for name in settings.directories]
    rates = [None if was else _rate(report) for report, was in zip(reports, was_interrupted, strict=True)]
    points = [
        {
            "point": point.name,
            "run_dir": str(opened.state.directory / directory),
            "values": dict(point.values),
            "settings": _settings(point),
            "exit_status": None if result.outcome is None else int(result.outcome.status),
            "problem": _problem(result),
            "error": result.failure,
            "was_interrupted": was,
            **_measured(report),
            "baseline": settings.points[baseline].name,
            "speedup": _quotient(rate, rates[baseline]),
        }
        for point, directory, result, report, was, baseline, rate in zip(
            settings.points, settings.directories, results, reports, was_interrupted, baselines, rates, strict=True
        )
    ]
    known = {rate: point.name for rate, point in zip(rates, settings.points, strict=True) if rate is not None}
    return {
        "sweep": {
            "model": opened.model["name"],
            "input": settings.job.input,
            "run_dir": str(opened.state.directory),
            **settings.parameters(),
            "resolved": manifest["resolved"],
        },
        "points": points,
        "fastest": known[max(known)] if known else None,
        "outputs": _outputs(opened, [report is not None for report in reports]),
        "definitions": {name: DEFINITIONS[name] for name in _DEFINED} | {"speedup": _SPEEDUP},
    }


def _problem(result: PointResult) -> str | None:
    """Return why a run did not end well, None where it did or could not run at all."""
    outcome = result.outcome
    if outcome is None or not outcome.status or outcome.report is None:
        return None
    if outcome.report["requests"]["num_failed"]:
        return f"{outcome.report['requests']['num_failed']} of its lines have an error record"
    account = outcome.report["reconciliation"]
    if account is not None and account["num_differences"]:
        return "the per-request sums and the Prometheus counters differ"
    return outcome.sentences[0]


def _settings(point: Point) -> dict[str, Any]:
    """Return what the point ran with, by the names of the flags, defaults included."""
    engine = point.engine
    return {
        **engine.speculative.document(),
        "max_num_seqs": engine.max_num_seqs,
        "max_num_batched_tokens": engine.max_num_batched_tokens,
        "enable_prefix_caching": engine.prefix_caching,
        "level": str(engine.level),
    }


def _baseline(point: Point, points: Sequence[Point]) -> int:
    """Return the place of the point without drafts on the same engine; of the first point where there is none."""
    for place, other in enumerate(points):
        if not other.is_drafting and _machine(other) == _machine(point):
            return place
    return 0


def _machine(point: Point) -> tuple[Any, ...]:
    return point.engine.max_num_seqs, point.engine.max_num_batched_tokens, point.engine.prefix_caching


def _measured(report: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the numbers of a run's report; None for all of a point that has none."""
    names = ("requests", "tokens", "throughput", "acceptance", "reconciliation")
    numbers = {name: None if report is None else report[name] for name in names}
    categories = {} if report is None else report["categories"]
    return numbers | {"categories": {name: each["acceptance"] for name, each in categories.items()}}


def _rate(report: Mapping[str, Any] | None) -> float | None:
    throughput = None if report is None else report["throughput"]
    rate: float | None = None if throughput is None else throughput["output_tokens_per_second"]
    return rate


def _quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


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
