"""Which drafter the accepted tokens are from."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.layout import Column, Part, Table, count, decimal, percentage

__all__ = ["source_parts"]

_COLUMNS = (
    Column(header="source", is_text=True),
    Column(header="steps"),
    Column(header="drafted"),
    Column(header="accepted"),
    Column(header="of drafted"),
    Column(header="accepted a step"),
    Column(header="of all accepted"),
)


def source_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield a table of draft tokens by source; nothing where the run does not tell.

    Args:
        document: what ``report_document`` made.
    """
    sources = document.get("sources")
    if not sources:
        return
    num_accepted = sum(counts["num_accepted_draft_tokens"] for counts in sources.values())
    rows = tuple(_row(name, counts, num_accepted) for name, counts in sources.items())
    yield Table(title="Draft tokens by source", columns=_COLUMNS, rows=rows)


def _row(name: str, counts: Mapping[str, int], num_accepted: int) -> tuple[str, ...]:
    steps, drafted, accepted = (counts[key] for key in ("num_steps", "num_draft_tokens", "num_accepted_draft_tokens"))
    return (
        name.replace("_", " "),
        count(steps),
        count(drafted),
        count(accepted),
        percentage(accepted / drafted if drafted else None),
        decimal(accepted / steps if steps else None, digits=2),
        percentage(accepted / num_accepted if num_accepted else None),
    )
