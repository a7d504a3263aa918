"""Sentences about the rows that a report leaves out, for standard error: bad data is never passed over in silence."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.files.wording import beginning
from batchspec.report.layout import count

__all__ = ["empty_sentences", "left_out_sentences"]


def empty_sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each file, if none of them holds a row: that is no failure.

    Args:
        document: what ``survey_logs`` made.
    """
    if not document["rows"]["num_rows"]:
        yield from (f"{path} holds no rows" for path in document["files"])


def left_out_sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each row that was left out, and one for those that are too many to be named.

    Args:
        document: what ``survey_logs`` made.
    """
    named, rows = document["left_out"], document["rows"]
    for row in named:
        name = "" if row["custom_id"] is None else f" ({beginning(row['custom_id'])})"
        yield f"{row['path']} line {row['line']}{name} is left out: {row['message']}"
    more = rows["num_malformed"] + rows["num_contradictory"] - len(named)
    if more:
        yield f"{count(more)} more rows are left out"
