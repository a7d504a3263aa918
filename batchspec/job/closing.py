"""The end of a run: every report written, the manifest closed, and sentences about how it went."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from batchspec.errors import UsageError
from batchspec.files import RunState
from batchspec.job.outcome import ExitStatus, JobOutcome, write_output, write_reports
from batchspec.reconcile import Reconciliation
from batchspec.report import Aggregate, report_document, throughput_document

__all__ = ["RunTotals", "close_run"]

_MAX_ERROR = 300


@dataclass(frozen=True, kw_only=True)
class RunTotals:
    """What a run leaves besides its records.

    Attributes:
        reconciliation: of the records with the counters; None when there is no per-request account.
        counters: what ``Counters.totals`` returned.
        sources: what ``SourceCounters.totals`` returned.
        exposition: the text of ``metrics.prom``.
        elapsed_seconds: wall-clock seconds.
        damage: what is wrong with the input, if it broke off.
    """

    reconciliation: Reconciliation | None
    counters: Mapping[str, Any]
    sources: Mapping[str, Mapping[str, int]]
    exposition: str
    elapsed_seconds: float
    damage: str | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the accounts agree, as far as there are two."""
        return self.reconciliation is None or self.reconciliation.is_exact


def close_run(
    state: RunState,
    aggregate: Aggregate,
    totals: RunTotals,
    *,
    model_name: str,
    input_path: str,
    input_name: str,
    sha256: str | None,
    output: str | Path | None = None,
) -> JobOutcome:
    """Write reports, counters, output and manifest of a run whose records are all in its journal.

    Args:
        state: the run directory.
        aggregate: of all records.
        totals: see there.
        model_name: as in the records.
        input_path: as the user gave it.
        input_name: how messages name it.
        sha256: of the input.
        output: further file for the responses.

    An output that cannot be written is a failure of the run, which is finished all the same.

    Raises:
        UsageError: a file of the run directory cannot be written.
    """
    document = aggregate.document()
    report = _report(state, document, totals, model_name=model_name, input_path=input_path)
    write_reports(state, report=report, exposition=totals.exposition)
    num_failed = document["requests"]["num_failed"]
    status = ExitStatus.FAILURES if num_failed or not totals.is_exact or totals.damage else ExitStatus.DONE
    state.save(
        status="interrupted" if totals.damage else "finished",
        counts=document["requests"],
        dataset=state.manifest["dataset"] | {"sha256": sha256},
        exit_status=int(status),
    )
    sentences = _sentences(document["requests"], totals, input_name=input_name, first_error=aggregate.first_error)
    if output is not None:
        try:
            write_output(state, output)
        except UsageError as error:
            status = ExitStatus.FAILURES
            sentences.append(str(error))
    last = f"responses, counters and reports are in {state.directory}"
    return JobOutcome(status=status, report=report, sentences=(*sentences, last))


def _report(
    state: RunState, document: Mapping[str, Any], totals: RunTotals, *, model_name: str, input_path: str
) -> dict[str, Any]:
    """Return the report of all records, beside the counters."""
    tokens = document["tokens"]
    is_known = not tokens["num_requests_without_usage"]
    return report_document(
        document,
        reconciliation=None if totals.reconciliation is None else totals.reconciliation.document(),
        totals=totals.counters,
        sources=totals.sources,
        run={
            "model": model_name,
            "input": input_path,
            **state.manifest["parameters"],
            "resolved": state.manifest["resolved"],
        },
        throughput=throughput_document(
            num_prompt_tokens=tokens["prompt_tokens"] if is_known else None,
            num_output_tokens=tokens["completion_tokens"] if is_known else None,
            elapsed_seconds=totals.elapsed_seconds,
        ),
    )


def _sentences(
    requests: Mapping[str, Any], totals: RunTotals, *, input_name: str, first_error: str | None
) -> list[str]:
    num_failed = requests["num_failed"]
    sentences = [] if totals.damage is None else [totals.damage]
    if not requests["num_requests"]:
        sentences.append(f"{input_name} holds no rows")
    if num_failed:
        lines = "line has" if num_failed == 1 else "lines have"
        first = "" if first_error is None else f"; the first: {shorten(first_error, _MAX_ERROR, placeholder=' …')}"
        sentences.append(f"{num_failed} {lines} an error record, a non-null error in the responses{first}")
    if num_failed and requests["failed_by_code"].get("invalid_json_line") == requests["num_requests"]:
        sentences.append(
            f"no line of {input_name} holds a JSON object: if its lines are prompts, make requests of them with "
            "batchspec convert --from text"
        )
    if not totals.is_exact:
        sentences.append("the per-request sums and the Prometheus counters differ: do not trust these numbers")
    return sentences
