"""The points of a sweep as JSON: what each ran with, what came of it, and how fast it is beside another."""

from collections.abc import Mapping, Sequence
from typing import Any

from batchspec.sweep.grid import Point
from batchspec.sweep.opening import OpenedSweep
from batchspec.sweep.running import PointResult

__all__ = ["is_timed", "point_documents"]


def point_documents(opened: OpenedSweep, results: Sequence[PointResult]) -> list[dict[str, Any]]:
    """Return the documents of all points, in their order.

    Args:
        opened: the sweep.
        results: what became of each point.
    """
    settings = opened.settings
    documents = [
        {
            "point": point.name,
            "run_dir": str(opened.state.directory / directory),
            "values": dict(point.values),
            "settings": _settings(point),
            "exit_status": None if result.outcome is None else int(result.outcome.status),
            "problem": _problem(result),
            "error": result.failure,
            "was_interrupted": directory in opened.resumed,
            **_measured(result.report),
        }
        for point, directory, result in zip(settings.points, settings.directories, results, strict=True)
    ]
    for point, document in zip(settings.points, documents, strict=True):
        baseline = documents[_baseline(point, settings.points)]
        document["baseline"] = baseline["point"]
        document["speedup"] = _rate(document) / _rate(baseline) if is_timed(document) and is_timed(baseline) else None
    return documents


def is_timed(document: Mapping[str, Any]) -> bool:
    """Return whether the point's speed can be compared: known, above zero, and of a run that did no work twice."""
    return not document["was_interrupted"] and document["throughput"] is not None and bool(_rate(document))


def _rate(document: Mapping[str, Any]) -> float:
    rate: float = document["throughput"]["output_tokens_per_second"]
    return rate


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
