"""One realistic report, made of random but seeded requests, for the golden files."""

from typing import Any

from batchspec.acceptance import sum_recorders
from batchspec.reconcile import AcceptanceSums, reconcile
from batchspec.report import Aggregate, report_document, throughput_document

from .records import failed, random_recorders, served

K = 3
CATEGORIES = ("code edit", "correct", "extract", "question", "story", "table")
RATES = (0.7, 0.6, 0.9, 0.5, 0.2, 0.8)


SOURCES = {
    "suffix_global": {"num_steps": 120, "num_draft_tokens": 900, "num_accepted_draft_tokens": 702},
    "ngram": {"num_steps": 33, "num_draft_tokens": 99, "num_accepted_draft_tokens": 20},
}


def sums_of(seed: int) -> AcceptanceSums:
    """The sums of a few requests that carry no metrics of their own."""
    total = sum_recorders(random_recorders(seed=seed, num=3, num_spec_tokens=K, rates=RATES))
    assert total is not None
    return AcceptanceSums.from_histogram(total.acceptance_histogram, total.num_draft_tokens)


def example_document(*, fault: AcceptanceSums | None = None, with_metrics: bool = True) -> dict[str, Any]:
    """Return the report of 66 requests: reconciled, with a fault in the counters, or without metrics in the records."""
    recorders = random_recorders(seed=11, num=64, num_spec_tokens=K, rates=RATES)
    aggregate, reported = Aggregate(), AcceptanceSums()
    for index, recorder in enumerate(recorders):
        category = CATEGORIES[index % len(CATEGORIES)]
        aggregate.add(served(recorder if with_metrics else None, index=index, category=category))
        reported += AcceptanceSums.from_document(recorder.speculative_decoding())
    aggregate.add(failed(index=64, code="context_length_exceeded"))
    aggregate.add(failed(index=65, code="invalid_value"))
    unreported = {"n > 1": sums_of(1), "several prompts": sums_of(2), "error": AcceptanceSums()}
    totals = sum(unreported.values(), reported) + (fault or AcceptanceSums())
    reconciliation = reconcile(reported=reported, unreported=unreported, totals=totals)
    document = aggregate.document()
    return report_document(
        document,
        reconciliation=reconciliation.document() if with_metrics else None,
        totals=totals.totals(),
        run={
            "input": "datasets/quickstart.jsonl",
            "model": "batchspec/models/target",
            "method": "ngram",
            "num_spec_tokens": K,
            "level": "detailed" if with_metrics else "none",
        },
        throughput=throughput_document(
            num_prompt_tokens=document["tokens"]["prompt_tokens"],
            num_output_tokens=document["tokens"]["completion_tokens"],
            elapsed_seconds=4.25,
        ),
        sources=SOURCES if with_metrics else None,
    )
