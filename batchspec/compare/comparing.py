"""The whole of ``batchspec compare``: two runs in, one document out."""

from collections.abc import Collection
from typing import Any

from batchspec.compare.bootstrap import Intervals, paired_intervals
from batchspec.compare.document import measure_document, pairs_document, run_document, texts_document
from batchspec.compare.measures import Key, all_measures, is_minor
from batchspec.compare.pairing import pair_runs
from batchspec.compare.rundirs import changed_settings, whole_throughput
from batchspec.compare.sides import Side, read_side
from batchspec.errors import UsageError
from batchspec.report.logs.bootstrap import CONFIDENCE, NUM_RESAMPLES

__all__ = ["compare_runs"]


def compare_runs(first: str, second: str, *, wanted: Collection[Key] = ()) -> dict[str, Any]:
    """Compare two runs of the same requests and return the document that ``--json`` prints.

    Args:
        first: run directory or file of responses, called A.
        second: likewise, called B; differences are B less A.
        wanted: measures that are to have intervals, although they are those of a category and not its pooled length,
            which have none otherwise: there are many, and a bootstrap takes its time.

    Raises:
        UsageError: a file cannot be read, an id stands twice in it, or the runs have no request in common.
    """
    if "-" in (first, second):
        raise UsageError("a run to compare cannot be standard input, as it is read twice: give a file")
    a, b = read_side(first), read_side(second)
    for side in (a, b):
        _check_served(side)
    if not a.requests.keys() & b.requests.keys():
        raise UsageError(
            f"{first} and {second} have no served request in common: runs are paired by custom_id, so compare two runs "
            "of the same input"
        )
    paired = pair_runs(a, b)
    measures = list(all_measures(paired.pairs))
    chosen = [measure for measure in measures if measure.key in wanted or not is_minor(measure)]
    intervals = paired_intervals(chosen, num_pairs=len(paired.pairs))
    interval_of = dict(zip((measure.key for measure in chosen), intervals, strict=True))
    return {
        "runs": {"a": run_document(a), "b": run_document(b)},
        "changed_settings": changed_settings(first, second),
        "pairs": pairs_document(a, b, num_pairs=len(paired.pairs)),
        "measures": [measure_document(one, interval_of.get(one.key, Intervals())) for one in measures],
        "throughput": {"a": whole_throughput(first), "b": whole_throughput(second)},
        "texts": texts_document(paired),
        "bootstrap": {"num_resamples": NUM_RESAMPLES, "confidence": CONFIDENCE},
    }


def _check_served(side: Side) -> None:
    """Raise UsageError for a run of which nothing can be compared."""
    if not side.requests:
        nothing = "no row has an id" if side.num_without_id else "it holds no responses"
        why = next((f"the first row failed with: {message}" for message in side.failed.values()), nothing)
        why = next(iter(side.sentences), why)
        raise UsageError(f"{side.path} has no served request that could be compared: {why}")
