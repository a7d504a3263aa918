"""A fault put on purpose into either account makes the reconciliation inexact."""

from typing import Any

import pytest
import torch

from batchspec.acceptance import AcceptanceRecorder, Level
from batchspec.counters import Counters

from .runs import reconciliation_of, spec_of
from .workloads import busy_run


def test_the_fixed_run_has_what_the_faults_below_need() -> None:
    engine, records = busy_run(Level.SUMMARY)
    documents = [spec_of(record) for record in records if record["custom_id"] != "r3"]
    histograms = [document["acceptance_histogram"] for document in documents]
    assert engine.scheduler.num_preemptions > 0
    assert all(sum(column) for column in zip(*histograms, strict=True))
    assert sum(document["num_discarded_tokens"] for document in documents) > 0
    assert engine.desk.unreported["n > 1"].num_spec_steps > 0
    assert reconciliation_of(engine, records).is_exact


def faulty_record(kind: str) -> Any:
    """The recorder's own ``record`` with a fault that strikes some steps only."""
    sound = AcceptanceRecorder.record

    def record(self: AcceptanceRecorder, **step: int) -> None:
        if step["num_drafted"] and step["position"] > 4:
            if kind == "a step lost":
                return
            if kind == "a token lost":
                step["num_accepted"] = max(0, step["num_accepted"] - 1)
            if kind == "padding counted":
                step["num_drafted"] = 3
        sound(self, **step)

    return record


@pytest.mark.parametrize("kind", ["a step lost", "a token lost", "padding counted"])
def test_a_fault_in_the_recorders_shows(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(AcceptanceRecorder, "record", faulty_record(kind))
    engine, records = busy_run(Level.SUMMARY)
    assert not reconciliation_of(engine, records).is_exact


def faulty_observe(kind: str) -> Any:
    """The counters' own ``observe_drafts`` with a fault."""
    sound = Counters.observe_drafts

    def observe(self: Counters, *, num_drafted: Any, accepted: Any) -> None:
        if kind == "a row lost":
            num_drafted, accepted = num_drafted[1:], accepted[1:]
        if kind == "a column lost":
            accepted = accepted[:, :2]
        if kind == "positions swapped":
            accepted = accepted[:, ::-1]
        if kind == "a draft token lost":
            num_drafted = num_drafted.copy()
            num_drafted[:1] -= 1
        sound(self, num_drafted=num_drafted, accepted=accepted)

    return observe


@pytest.mark.parametrize("kind", ["a row lost", "a column lost", "positions swapped", "a draft token lost"])
def test_a_fault_in_the_counters_shows(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(Counters, "observe_drafts", faulty_observe(kind))
    engine, records = busy_run(Level.SUMMARY)
    assert not reconciliation_of(engine, records).is_exact


def test_a_fault_in_the_mask_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches counted wherever they stand, not only the leading ones."""

    def mask(drafting: Any, *, target_ids: Any, has_target: Any) -> Any:
        width = max((len(draft) for _, draft in drafting), default=0)
        rows = [
            [i < len(draft) and target_ids[first + i] == draft[i] for i in range(width)] for first, draft in drafting
        ]
        return torch.tensor(rows, dtype=torch.bool).reshape(len(drafting), width).numpy()

    monkeypatch.setattr("batchspec.verify.acceptance_mask", mask)
    engine, records = busy_run(Level.SUMMARY)
    assert not reconciliation_of(engine, records).is_exact


def test_dropping_what_is_unreported_shows() -> None:
    engine, records = busy_run(Level.SUMMARY)
    engine.desk.unreported.clear()
    assert not reconciliation_of(engine, records).is_exact
