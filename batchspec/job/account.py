"""The two accounts of a run beyond one process: what a checkpoint keeps of them, and how they are compared."""

from collections.abc import Mapping
from typing import Any

from batchspec.job.serving import Serving
from batchspec.reconcile import AcceptanceSums, Reconciliation

__all__ = ["RunAccount"]


class RunAccount:
    """Sums of requests whose records carry no metrics, carried over interruptions, beside an engine's counters.

    Args:
        engine: which keeps the two accounts of this process.
    """

    def __init__(self, engine: Serving):
        self.engine = engine
        self.elapsed_seconds = 0.0
        self._carried: dict[str, AcceptanceSums] = {}

    def state(self, *, elapsed_seconds: float) -> dict[str, Any]:
        """Return what the checkpoint keeps: everything counted so far, and what no written record accounts for."""
        unreported = dict(self._carried)
        for cause, sums in self.engine.unreported().items():
            unreported[cause] = unreported.get(cause, AcceptanceSums()) + sums
        return {
            "elapsed_seconds": self.elapsed_seconds + elapsed_seconds,
            "counters": self.engine.counters.snapshot(),
            "sources": self.engine.sources.totals(),
            "unreported": {cause: sums.totals() for cause, sums in unreported.items()},
            "in_flight": self.engine.in_flight().totals(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Count on from a checkpoint; what was in flight then is computed again and stays named as interrupted."""
        self.elapsed_seconds = state["elapsed_seconds"]
        self.engine.counters.restore(state["counters"])
        self.engine.sources.restore(state.get("sources", {}))
        for cause, totals in state["unreported"].items():
            self._carry(cause, AcceptanceSums.from_totals(totals))
        self._carry("interrupted", AcceptanceSums.from_totals(state["in_flight"]))

    def forget(self, kept: AcceptanceSums) -> None:
        """Take note of records that were kept although the counters that belong to them are lost."""
        self._carry("kept without counters", AcceptanceSums() - kept)

    def reconcile(self, reported: AcceptanceSums) -> Reconciliation | None:
        """Compare the accounts; None when there is no per-request account."""
        return self.engine.reconcile(reported, carried=self._carried)

    def _carry(self, cause: str, sums: AcceptanceSums) -> None:
        if any(sums.counts().values()):
            self._carried[cause] = self._carried.get(cause, AcceptanceSums()) + sums
