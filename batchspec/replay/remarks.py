"""What a replay says on standard error about rows that nobody can read: bad data is never passed over in silence."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.replay.recorded import Cause
from batchspec.report.layout import count

__all__ = ["left_out_sentences"]


def left_out_sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about the rows that are no responses, if there are any; others are left out for what they are.

    Args:
        document: what ``replay_logs`` returned.
    """
    rows = document["replayed"]["left_out"].get(str(Cause.MALFORMED))
    if rows is None:
        return
    more = rows["num_rows"] - len(rows["named"])
    names = ", ".join(rows["named"]) + (f" and {count(more)} more" if more else "")
    yield f"rows that are no responses are left out: {names}"
