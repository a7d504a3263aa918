"""Draft tokens by the drafter that they are from, where several take part.

A series of our own beside vLLM's: ``batchspec:spec_decode_num_draft_tokens_by_source_total`` and the accepted ones. Fed
from what each step committed.
"""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter

from batchspec.step import Outcome

__all__ = ["SourceCounters"]

_KINDS = {
    "num_steps": ("drafts", "Verification steps, by the source of their draft."),
    "num_draft_tokens": ("draft_tokens", "Draft tokens proposed, by source."),
    "num_accepted_draft_tokens": ("accepted_tokens", "Draft tokens accepted, by source."),
}


class SourceCounters:
    """Counters that exist for the sources that were seen.

    Args:
        labels: names and values that all series of the run have.
        registry: where the series live.
    """

    def __init__(self, *, labels: Mapping[str, str], registry: CollectorRegistry):
        self._labels = dict(labels)
        self._families = {
            kind: Counter(
                f"batchspec:spec_decode_num_{name}_by_source",
                text,
                labelnames=(*labels, "source"),
                registry=registry,
            )
            for kind, (name, text) in _KINDS.items()
        }
        self._counts: dict[str, dict[str, int]] = {}

    def observe(self, outcomes: Iterable[Outcome]) -> None:
        """Count the drafts of one step."""
        for outcome in outcomes:
            if outcome.num_drafted and outcome.source:
                self._add(outcome.source, (1, outcome.num_drafted, outcome.num_accepted))

    def totals(self) -> dict[str, dict[str, int]]:
        """Return the counts of every source, the one with most accepted tokens first."""
        ranked = sorted(self._counts, key=lambda source: (-self._counts[source]["num_accepted_draft_tokens"], source))
        return {source: dict(self._counts[source]) for source in ranked}

    def restore(self, totals: Mapping[str, Mapping[str, int]]) -> None:
        """Count on from what ``totals`` returned."""
        for source, counts in totals.items():
            self._add(source, tuple(counts[kind] for kind in _KINDS))

    def _add(self, source: str, numbers: tuple[int, ...]) -> None:
        counts = self._counts.setdefault(source, dict.fromkeys(_KINDS, 0))
        for kind, number in zip(_KINDS, numbers, strict=True):
            counts[kind] += number
            self._families[kind].labels(**self._labels, source=source).inc(number)
