"""The whole of ``batchspec sweep``: a grid in, runs and one comparison out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from batchspec.errors import UsageError
from batchspec.files.atomic import write_whole
from batchspec.job.outcome import ExitStatus
from batchspec.job.watch import Watcher
from batchspec.report.markdown import parts_markdown
from batchspec.requirements import Requirement
from batchspec.sweep.document import sweep_document
from batchspec.sweep.gate import judge_sweep
from batchspec.sweep.opening import OpenedSweep, open_sweep
from batchspec.sweep.running import run_points
from batchspec.sweep.settings import SweepSettings
from batchspec.sweep.tables import sweep_parts
from batchspec.sweep.verdicts import difference_sentence

__all__ = ["SweepOutcome", "run_sweep"]


@dataclass(frozen=True, kw_only=True)
class SweepOutcome:
    """The end of a sweep.

    Attributes:
        status: what to exit with.
        document: the comparison; None when the sweep was interrupted.
        sentences: what is left to tell the user, one line each.
    """

    status: ExitStatus
    document: Mapping[str, Any] | None
    sentences: tuple[str, ...]


def run_sweep(
    settings: SweepSettings,
    *,
    requirements: Sequence[Requirement] = (),
    by_category: bool = False,
    watch: Callable[[], Watcher],
) -> SweepOutcome:
    """Run the points that have not been run, compare all of them, and write the comparison down.

    Args:
        settings: what to do.
        requirements: what every point that drafts has to meet.
        by_category: show the acceptance in each category, too.
        watch: returns somebody who watches a single run.

    Raises:
        UsageError: the sweep cannot start, and nothing was written; or its directory can no longer be written.
    """
    opened = open_sweep(settings)
    results = run_points(opened, watch=watch)
    if len(results) < len(settings.points):
        sentence = f"interrupted behind {len(results)} of {len(settings.points)} points"
        return SweepOutcome(
            status=ExitStatus.INTERRUPTED,
            document=None,
            sentences=(f"{sentence}: run the same command again to continue",),
        )
    document = sweep_document(opened, results)
    judged = judge_sweep(requirements, document)
    document["requirements"] = [one.document() for one in judged]
    _write(opened, document, by_category=by_category)
    failed = [one.sentence() for one in judged if not one.holds]
    wrong = [*_wrong_points(document), *failed]
    return SweepOutcome(
        status=ExitStatus.FAILURES if wrong else ExitStatus.DONE,
        document=document,
        sentences=(*wrong, *_empty(document), f"the comparison and all runs are in {opened.state.directory}"),
    )


def _empty(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence if the input holds no rows, which is no failure."""
    requests = [point["requests"] for point in document["points"] if point["error"] is None]
    if requests and not any(one["num_requests"] for one in requests):
        yield f"{document['sweep']['input']} holds no rows"


def _wrong_points(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what did not end well: points that could not run, runs with failures, outputs that differ."""
    points = document["points"]
    yield from (f"{point['point']} could not run: {point['error']}" for point in points if point["error"] is not None)
    ended = [point for point in points if point["exit_status"]]
    if ended:
        first, others = ended[0], len(ended) - 1
        more = f" and {others} more" if others else ""
        yield f"{first['point']}{more} ended with status {first['exit_status']}: {first['problem']}"
    difference = difference_sentence(document["outputs"])
    if difference is not None:
        yield difference


def _write(opened: OpenedSweep, document: Mapping[str, Any], *, by_category: bool) -> None:
    files = {
        "sweep.json": orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n",
        "sweep.md": parts_markdown("Sweep", sweep_parts(document, by_category=by_category)).encode(),
    }
    for name, data in files.items():
        path = opened.state.path(name)
        try:
            write_whole(path, data)
        except OSError as error:
            raise UsageError(f"{path} cannot be written ({error.strerror or error}): check the disk") from error
