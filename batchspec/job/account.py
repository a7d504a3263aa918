"""The two accounts of a run beyond one process: what a checkpoint keeps of them, and how they are compared."""

from collections.abc import Mapping
from typing import Any

from batchspec.acceptance import AcceptanceRecorder
from batchspec.engine import EngineCore
from batchspec.reconcile import AcceptanceSums, Reconciliation, reconcile

__all__ = ["RunAccount"]


class RunAccount:
    """Sums of requests whose records carry no metrics, carried over interruptions, beside an engine's counters.

    Args:
        engine: whose counters and recorders are the two accounts.
        has_records: whether records carry metrics (the level is not none).
    """

    def __init__(self, *, engine: EngineCore, has_records: bool):
        self.engine = engine
        self.has_records = has_records
        self.elapsed_seconds = 0.0
        self._carried: dict[str, AcceptanceSums] = {}

    def state(self, *, elapsed_seconds: float) -> dict[str, Any]:
        """Return what the checkpoint keeps: everything counted so far, and what no written record accounts for."""
        unreported = {cause: sums.totals() for cause, sums in self._unreported().items()}
        return {
            "elapsed_seconds": self.elapsed_seconds + elapsed_seconds,
            "counters": self.engine.counters.snapshot(),
            "unreported": unreported,
            "in_flight": self._in_flight().totals(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Count on from a checkpoint; what was in flight then is computed again and stays named as interrupted."""
        self.elapsed_seconds = state["elapsed_seconds"]
        self.engine.counters.restore(state["counters"])
        for cause, totals in state["unreported"].items():
            self._carry(cause, AcceptanceSums.from_totals(totals))
        self._carry("interrupted", AcceptanceSums.from_totals(state["in_flight"]))

    def forget(self, kept: AcceptanceSums) -> None:
        """Take note of records that were kept although the counters that belong to them are lost."""
        self._carry("kept without counters", AcceptanceSums() - kept)

    def reconcile(self, reported: AcceptanceSums) -> Reconciliation | None:
        """Compare the accounts; None when there is no per-request account."""
        if not self.has_records:
            return None
        totals = AcceptanceSums.from_totals(self.engine.counters.totals())
        return reconcile(reported=reported, unreported=self._unreported(), totals=totals)

    def _carry(self, cause: str, sums: AcceptanceSums) -> None:
        if any(sums.counts().values()):
            self._carried[cause] = self._carried.get(cause, AcceptanceSums()) + sums

    def _unreported(self) -> dict[str, AcceptanceSums]:
        found = dict(self._carried)
        for cause, recorder in self.engine.desk.unreported.items():
            found[cause] = found.get(cause, AcceptanceSums()) + _sums(recorder)
        return found

    def _in_flight(self) -> AcceptanceSums:
        """Return the sums of requests whose records are not written: still running, or waiting for an earlier one."""
        total = AcceptanceSums()
        for recorder in self.engine.desk.in_flight():
            total += _sums(recorder)
        for record in self.engine.desk.held():
            metrics = record["response"]["body"].get("metrics") or {}
            if metrics.get("speculative_decoding"):
                total += AcceptanceSums.from_document(metrics["speculative_decoding"])
        return total


def _sums(recorder: AcceptanceRecorder) -> AcceptanceSums:
    return AcceptanceSums.from_histogram(recorder.acceptance_histogram, recorder.num_draft_tokens)
