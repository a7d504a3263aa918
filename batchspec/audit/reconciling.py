"""The whole of ``batchspec reconcile``: two accounts in, one document out."""

from collections.abc import Mapping
from typing import Any

from batchspec.audit.counts import FINISHED
from batchspec.audit.inputs import AuditInputs
from batchspec.audit.ledger import Ledger
from batchspec.audit.sheet import SheetRow, make_sheet
from batchspec.audit.verdict import Outcome, Verdict, differences, judge
from batchspec.audit.window import Outside, find_outside
from batchspec.errors import UsageError
from batchspec.ingest import read_logs
from batchspec.reconcile.between import Counted, counted_between
from batchspec.reconcile.scrapes import read_scrape

__all__ = ["reconcile_logs"]

_DEFINITIONS = {
    "reported": "sum over the responses that state their drafts",
    "unreported": "recorded for requests whose responses carry no metrics, by cause",
    "counters": "difference of the two scrapes, over all engines; without --before, as they stand",
    "difference": "per-request sums, and unreported ones where they are known, less the counters",
}


def reconcile_logs(inputs: AuditInputs) -> dict[str, Any]:
    """Compare responses with counters and return the document that ``--json`` prints.

    Raises:
        UsageError: a file cannot be read, the counters were reset, or no response states its drafts although the
            counters counted some.
    """
    after = read_scrape(inputs.after)
    counted = counted_between(None if inputs.before is None else read_scrape(inputs.before), after)
    ledger = Ledger()
    for row in read_logs([inputs.responses]):
        ledger.add(row)
    if not ledger.num_reported and any(counted.total.values()):
        raise UsageError(
            f"no row of {inputs.responses} states its drafts, although {inputs.after} counts some: make the responses "
            "with per-request metrics (batchspec: --level summary, vLLM: --per-request-spec-decode-metrics summary)"
        )
    sheet = make_sheet(ledger, counted, unreported=inputs.unreported or {})
    verdict = judge(
        sheet,
        ledger,
        num_finished=counted.num_finished if inputs.unreported is None else None,
        outside=_outside(inputs, sheet, counted),
        is_whole=inputs.unreported is not None,
    )
    return _document(inputs, ledger, counted, sheet, verdict)


def _outside(inputs: AuditInputs, sheet: list[SheetRow], counted: Counted) -> Outside | None:
    """Return the rows outside the scrape window; asked only where the responses state more than the counters."""
    gap = differences(sheet)
    if min(gap.values(), default=0) >= 0 or inputs.responses == "-" or inputs.unreported is not None:
        return None
    target = {row.key: row.counters for row in sheet if row.difference is not None and row.counters is not None}
    if counted.num_finished is not None:
        target[FINISHED] = counted.num_finished
    return find_outside(read_logs([inputs.responses]), target)


def _document(
    inputs: AuditInputs, ledger: Ledger, counted: Counted, sheet: list[SheetRow], verdict: Verdict
) -> dict[str, Any]:
    silent: Mapping[str, Any] = {cause: rows.document() for cause, rows in sorted(ledger.silent.items())}
    return {
        "verdict": str(verdict.outcome),
        "is_exact": verdict.outcome is Outcome.EXACT,
        "sentences": list(verdict.sentences),
        "responses": {
            "path": inputs.responses,
            "num_rows": ledger.num_rows,
            "num_reported": ledger.num_reported,
            "num_sequences": ledger.num_sequences,
            "without_metrics": silent,
            "faults": list(ledger.faults),
        },
        "scrapes": {
            "before": inputs.before,
            "after": inputs.after,
            "engines": list(counted.by_engine),
            "num_finished_sequences": counted.num_finished,
        },
        "rows": [row.document() for row in sheet],
        "definitions": dict(_DEFINITIONS),
    }
