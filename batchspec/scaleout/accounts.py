"""The accounts of several engines, added up: counters, and what no record tells, by cause."""

from collections.abc import Mapping
from typing import Any

from batchspec.reconcile import AcceptanceSums, Reconciliation, reconcile
from batchspec.scaleout.merged_counters import MergedCounters
from batchspec.source_counters import SourceCounters

__all__ = ["MergedAccount", "num_positions"]

_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos/"


class MergedAccount:
    """Adds up what runs or workers have counted, each in the shape that a checkpoint keeps.

    Args:
        model_name: as the engines name it in their counters.
        num_spec_tokens: the engines' k.

    Attributes:
        counters: the sum of the counters.
        sources: the sum of the draft tokens by source.
        unreported: by cause, what was recorded for requests whose records carry no metrics.
    """

    def __init__(self, *, model_name: str, num_spec_tokens: int):
        self.counters = MergedCounters(model_name=model_name, num_spec_tokens=num_spec_tokens)
        self.sources = SourceCounters(labels=self.counters.labels, registry=self.counters.registry)
        self.unreported: dict[str, AcceptanceSums] = {}

    def add(self, state: Mapping[str, Any]) -> None:
        """Add the account of a run that is over: ``counters``, ``sources``, ``unreported`` and ``in_flight``."""
        self.counters.restore(state["counters"])
        self.sources.restore(state.get("sources", {}))
        for cause, totals in state["unreported"].items():
            self.carry(cause, AcceptanceSums.from_totals(totals))
        self.carry("interrupted", AcceptanceSums.from_totals(state["in_flight"]))

    def carry(self, cause: str, sums: AcceptanceSums) -> None:
        """Name something that no record tells."""
        if any(sums.counts().values()):
            self.unreported[cause] = self.unreported.get(cause, AcceptanceSums()) + sums

    def state(self, *, elapsed_seconds: float) -> dict[str, Any]:
        """Return the sum in the shape that a checkpoint keeps, with nothing in flight."""
        return {
            "elapsed_seconds": elapsed_seconds,
            "counters": self.counters.snapshot(),
            "sources": self.sources.totals(),
            "unreported": {cause: sums.totals() for cause, sums in self.unreported.items()},
            "in_flight": AcceptanceSums().totals(),
        }

    def reconcile(self, reported: AcceptanceSums) -> Reconciliation:
        """Compare the sum over all records with the sum of the counters."""
        totals = AcceptanceSums.from_totals(self.counters.totals())
        return reconcile(reported=reported, unreported=self.unreported, totals=totals)


def num_positions(counters: Mapping[str, float]) -> int:
    """Return the k of the engine whose counters these are, as ``Counters.snapshot`` returned them."""
    return sum(key.startswith(_PER_POSITION) for key in counters)
