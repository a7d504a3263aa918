"""Sentences about what a comparison leaves out, for standard error: bad data is never passed over in silence."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.layout import count

__all__ = ["left_out_sentences"]


def left_out_sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each row that was left out, and one for those of a run that are too many to be named.

    Args:
        document: what ``compare_runs`` made.
    """
    for run in document["runs"].values():
        yield from run["left_out"]
        more = run["num_left_out"] - len(run["left_out"])
        if more:
            yield f"{count(more)} more rows of {run['path']} are left out"
