"""A shard's own two accounts, held against each other before anything is merged."""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import UsageError
from batchspec.files import read_records
from batchspec.reconcile import Reconciliation
from batchspec.report import Aggregate
from batchspec.report.bodies import body_facts
from batchspec.report.identities import broken_identities
from batchspec.scaleout.accounts import MergedAccount, num_positions
from batchspec.scaleout.shards import ShardRun

__all__ = ["AccountCheck"]

_REMEDY = "copy its files again, or run it again with --overwrite"
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)


class AccountCheck:
    """Adds up the records of a shard as they are read, and compares the sums with its counters.

    Args:
        run: the shard.
    """

    def __init__(self, run: ShardRun):
        self._run = run
        self._aggregate = Aggregate()

    def add(self, number: int, record: Mapping[str, Any]) -> None:
        """Add the record on a line; UsageError if it lacks what every record has, or was made with another k."""
        try:
            self._aggregate.add(record)
        except UsageError as error:
            raise self._damaged(f"line {number}: {str(error).partition(';')[0]}") from error
        except _MALFORMED as error:
            raise self._damaged(f"line {number} is not a record of a run") from error

    def finish(self) -> None:
        """Raise UsageError unless the accounts agree; it names the line of a record that contradicts itself."""
        if self._run.manifest["parameters"]["level"] == "none":
            return
        reconciliation = self._reconcile()
        if reconciliation.is_exact:
            return
        contradiction = self._contradiction()
        if contradiction is not None:
            raise self._damaged(contradiction)
        row = next(row for row in reconciliation.rows if row.difference)
        told = row.reported + sum(row.unreported.values())
        raise self._damaged(f"holds records whose {row.quantity} sum up to {told:,}, its counters say {row.counters:,}")

    def _reconcile(self) -> Reconciliation:
        run = self._run
        try:
            name, num_spec_tokens = run.manifest["model"]["name"], num_positions(run.state["counters"])
            account = MergedAccount(model_name=name, num_spec_tokens=num_spec_tokens)
            account.add(run.state)
        except _MALFORMED as error:
            raise UsageError(f"shard {run.shard} in {run.directory} has lost its counters: {_REMEDY}") from error
        return account.reconcile(self._aggregate.sums())

    def _contradiction(self) -> str | None:
        for number, record in enumerate(read_records(self._run.responses), start=1):
            response = record.get("response") or {}
            facts = body_facts(response["body"]) if response.get("status_code") == 200 else None
            if facts is None or facts.usage is None or facts.speculative_decoding is None:
                continue
            broken = broken_identities(
                facts.speculative_decoding,
                batchspec=facts.batchspec,
                completion_tokens=facts.usage["completion_tokens"],
            )
            if broken:
                return f"line {number} ({record.get('custom_id')}): {broken[0]}"
        return None

    def _damaged(self, what: str) -> UsageError:
        return UsageError(f"shard {self._run.shard} is damaged: {self._run.responses} {what}: {_REMEDY}")
