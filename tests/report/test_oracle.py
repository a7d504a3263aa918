"""Captures of a real server: what its responses say adds up to what its counters counted."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from batchspec.reconcile import AcceptanceSums, reconcile
from batchspec.report import Aggregate, acceptance_from_counters, totals_from_exposition

ORACLE = Path(__file__).parents[1] / "data" / "oracle"
SPECULATIVE = ("ngram_k1_n1-1", "ngram_k3_n1-3", "ngram_k5_n2-4")


def records_of(folder: str, group: str) -> list[dict[str, Any]]:
    lines = (ORACLE / folder / f"{group}.responses.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def acceptance_of(records: Iterable[dict[str, Any]]) -> Any:
    aggregate = Aggregate()
    for record in records:
        aggregate.add(record)
    return aggregate.document()["acceptance"]


def counted(folder: str, group: str) -> AcceptanceSums:
    before, after = (
        AcceptanceSums.from_totals(totals_from_exposition((ORACLE / folder / f"{group}.{when}.prom").read_text()))
        for when in ("before", "after")
    )
    return after - before


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_greedy_groups_reconcile_exactly(folder: str) -> None:
    acceptance = acceptance_of(records_of(folder, "greedy"))
    reported = AcceptanceSums.from_document(acceptance["pooled"])
    reconciliation = reconcile(reported=reported, unreported={}, totals=counted(folder, "greedy"))
    assert reconciliation.is_exact
    assert reported.num_spec_steps > 100
    assert acceptance["num_inconsistent_requests"] == 0


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_one_lost_response_does_not_reconcile(folder: str) -> None:
    acceptance = acceptance_of(records_of(folder, "greedy")[1:])
    reported = AcceptanceSums.from_document(acceptance["pooled"])
    assert not reconcile(reported=reported, unreported={}, totals=counted(folder, "greedy")).is_exact


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_the_edge_group_lacks_what_its_unreported_requests_drafted(folder: str) -> None:
    records = records_of(folder, "edges")
    acceptance = acceptance_of(records)
    silent = [record["custom_id"] for record in records if not has_metrics(record)]
    assert silent == ["n2", "stopstr", "multiprompt"]
    reported = AcceptanceSums.from_document(acceptance["pooled"])
    missing = counted(folder, "edges") - reported
    assert min(missing.counts().values()) >= 0
    assert reconcile(reported=reported, unreported={"no metrics": missing}, totals=counted(folder, "edges")).is_exact


def has_metrics(record: dict[str, Any]) -> bool:
    metrics = record["response"]["body"]["metrics"]
    return metrics is not None and metrics["speculative_decoding"] is not None


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_counters_alone_tell_the_pooled_numbers(folder: str) -> None:
    from_records = acceptance_of(records_of(folder, "greedy"))
    from_counters = acceptance_from_counters(counted(folder, "greedy").totals())
    assert from_counters is not None
    for key in ("mean_acceptance_length", "draft_acceptance_rate", "acceptance_histogram"):
        assert from_counters["pooled"][key] == from_records["pooled"][key]


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_every_record_states_its_own_ratios(folder: str) -> None:
    for record in records_of(folder, "greedy"):
        stated = record["response"]["body"]["metrics"]["speculative_decoding"]
        pooled = acceptance_of([record])["pooled"]
        mean = acceptance_of([record])["mean_over_requests"]
        for key in ("mean_acceptance_length", "draft_acceptance_rate"):
            assert stated["num_spec_steps"] == 0 or pooled[key] == mean[key] == stated[key]


def test_without_speculation_there_is_nothing_to_report() -> None:
    assert acceptance_of(records_of("none", "greedy")) is None
    assert counted("none", "greedy") == AcceptanceSums()
    assert acceptance_from_counters(counted("none", "greedy").totals()) is None
