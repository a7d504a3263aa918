"""The report as one JSON document: what ``report.json`` holds, ``--json`` prints and both renderings read."""

from collections.abc import Mapping
from typing import Any

from batchspec.report.definitions import DEFINITIONS
from batchspec.report.from_counters import acceptance_from_counters

__all__ = ["report_document", "throughput_document"]


def throughput_document(
    *, num_prompt_tokens: int | None, num_output_tokens: int | None, elapsed_seconds: float
) -> dict[str, float | None]:
    """Return elapsed seconds and tokens per second, None when no time passed or the tokens are not known.

    Args:
        num_prompt_tokens: prompt tokens computed in that time; None when not known.
        num_output_tokens: tokens that reached an output in that time; None when not known.
        elapsed_seconds: wall-clock seconds.
    """

    def per_second(num_tokens: int | None) -> float | None:
        return None if num_tokens is None or elapsed_seconds <= 0 else num_tokens / elapsed_seconds

    return {
        "elapsed_seconds": elapsed_seconds,
        "prompt_tokens_per_second": per_second(num_prompt_tokens),
        "output_tokens_per_second": per_second(num_output_tokens),
    }


def report_document(
    aggregate_document: Mapping[str, Any],
    *,
    reconciliation: Mapping[str, Any] | None,
    totals: Mapping[str, Any] | None,
    run: Mapping[str, Any],
    throughput: Mapping[str, Any] | None,
    sources: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    """Return the report; keys stand in a fixed order.

    Args:
        aggregate_document: what ``Aggregate.document`` made. If no record carried metrics, ``acceptance`` is made from
            the totals instead, and its ``source`` says so.
        reconciliation: what ``Reconciliation.document`` made; None when there is no per-request account.
        totals: what ``Counters.totals`` returned; None when there are no counters.
        run: how the run was made, kept as it is; ``model``, ``method``, ``num_spec_tokens`` and ``level`` are shown.
        throughput: what ``throughput_document`` made; None when the time is not known.
        sources: draft tokens by source, as ``SourceCounters.totals`` returned it; None when not known.
    """
    acceptance = aggregate_document["acceptance"]
    if acceptance is None and totals is not None:
        acceptance = acceptance_from_counters(totals)
    return {
        "run": dict(run),
        "requests": aggregate_document["requests"],
        "tokens": aggregate_document["tokens"],
        "throughput": None if throughput is None else dict(throughput),
        "acceptance": acceptance,
        "categories": aggregate_document["categories"],
        "counters": None if totals is None else dict(totals),
        "sources": None if sources is None else {name: dict(counts) for name, counts in sources.items()},
        "reconciliation": None if reconciliation is None else dict(reconciliation),
        "definitions": dict(DEFINITIONS),
    }
