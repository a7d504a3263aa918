"""The accounts of a Ray Data pipeline, added up from its rows."""

from collections.abc import Mapping
from typing import Any

import orjson

from batchspec.reconcile import AcceptanceSums, Reconciliation
from batchspec.report import Aggregate, report_document
from batchspec.scaleout.accounts import MergedAccount, num_positions

__all__ = ["StageTally"]


class StageTally:
    """Takes in the rows that ``BatchSpecStage`` made, in any order, and reconciles them with the counters.

    >>> tally = StageTally()
    >>> for row in served.iter_rows():
    ...     tally.add(row)
    >>> assert tally.reconcile().is_exact
    """

    def __init__(self) -> None:
        self._aggregate = Aggregate()
        self._accounts: dict[str, Mapping[str, Any]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in a row; every row of the dataset once."""
        self._aggregate.add(orjson.loads(row["record"]))
        if row["account"]:
            account = orjson.loads(row["account"])
            earlier = self._accounts.get(account["worker"])
            if earlier is None or earlier["number"] < account["number"]:
                self._accounts[account["worker"]] = account

    def reconcile(self) -> Reconciliation:
        """Compare what the rows tell with the sum of the workers' counters.

        Records that a worker made and that are in no row were made again by another; they are named ``made again``.
        """
        return self._merged().reconcile(self._aggregate.sums())

    def report(self) -> dict[str, Any]:
        """Return the report as ``report.json`` holds it; elapsed time and throughput are not known here."""
        merged = self._merged()
        return report_document(
            self._aggregate.document(),
            reconciliation=merged.reconcile(self._aggregate.sums()).document(),
            totals=merged.counters.totals(),
            run={"model": None},
            throughput=None,
            sources=merged.sources.totals(),
        )

    def _merged(self) -> MergedAccount:
        accounts = list(self._accounts.values())
        positions = max((num_positions(account["counters"]) for account in accounts), default=0)
        merged = MergedAccount(model_name="merged", num_spec_tokens=positions)
        for account in accounts:
            merged.add(account)
        handed = (AcceptanceSums.from_totals(account["handed"]) for account in accounts)
        merged.carry("made again", sum(handed, AcceptanceSums()) - self._aggregate.sums())
        return merged
