"""Whole runs with everything drawn at random: the output never depends on how it was computed, and all counts agree.

Prompts, samples, turns, stops and errors are drawn once; the run without speculation, one sequence at a time, says what
the output must be. A second engine with drawn drafter, k, batch, budget, pages and level must give the same output.
"""

from typing import Any

import torch
from hypothesis import given, settings

from batchspec.acceptance import Level
from batchspec.request import Request

from .runs import reconciliation_of, serve, spec_of
from .workloads import Setup, busy_run, engine_of, plain_run, setups, tables, visible, workloads


@settings(max_examples=60)
@given(table=tables, requests=workloads(), setup=setups)
def test_output_never_depends_on_the_computation_and_all_counts_agree(
    table: torch.Tensor, requests: list[Request], setup: Setup
) -> None:
    expected, answers = plain_run(table, requests)
    engine = engine_of(table, setup, answers)
    records = serve(engine, requests)

    assert [record["custom_id"] for record in records] == [request.custom_id for request in requests]
    assert [visible(record) for record in records] == [visible(record) for record in expected]
    if setup.level is Level.NONE:
        assert all(record["response"]["body"].get("metrics") is None for record in records)
        assert not engine.desk.unreported
        return
    assert reconciliation_of(engine, records).is_exact
    for request, record in zip(requests, records, strict=True):
        if record["error"] is None and request.is_reportable:
            check_identities(record, k=setup.k)


def check_identities(record: dict[str, Any], *, k: int) -> None:
    """What holds for the metrics of every record."""
    spec = spec_of(record)
    body = record["response"]["body"]
    emitted = body["usage"]["completion_tokens"] - len(body["choices"])
    assert emitted == spec["num_decode_steps"] + spec["num_accepted_draft_tokens"] - spec["num_discarded_tokens"]
    assert len(spec["acceptance_histogram"]) == k + 1
    assert spec["num_spec_steps"] == sum(spec["acceptance_histogram"]) <= spec["num_decode_steps"]
    assert spec["num_accepted_draft_tokens"] <= spec["num_draft_tokens"] <= k * spec["num_spec_steps"]
    assert spec["num_spec_tokens"] == k
    if "per_step_drafted" in spec:
        steps = list(zip(spec["per_step_drafted"], spec["per_step_accepted"], strict=True))
        assert len(steps) == spec["num_spec_steps"] == len(spec["per_step_position"])
        assert all(0 <= accepted <= drafted and 1 <= drafted <= k for drafted, accepted in steps)
        assert sum(spec["per_step_drafted"]) == spec["num_draft_tokens"]
        assert [spec["per_step_accepted"].count(j) for j in range(k + 1)] == spec["acceptance_histogram"]


def test_totals_do_not_depend_on_the_level() -> None:
    totals = [busy_run(level)[0].counters.totals() for level in Level]
    assert totals[0] == totals[1] == totals[2]


def test_summary_and_detailed_agree() -> None:
    brief, full = (busy_run(level)[1] for level in (Level.SUMMARY, Level.DETAILED))
    for short, long in zip(brief, full, strict=True):
        if short["response"]["body"]["metrics"] is not None:
            assert spec_of(short).items() <= spec_of(long).items()


def test_two_runs_are_identical() -> None:
    first, second = (busy_run(Level.DETAILED)[1] for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert one["response"]["body"]["metrics"] == other["response"]["body"]["metrics"]
        assert visible(one) == visible(other)
