"""Predicted times: every step of the real scheduler, row by row, and costs from a line or a benchmark."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchspec.acceptance import Level
from batchspec.drafting import Drafter, NgramDrafter, NoDrafter
from batchspec.engine import EngineCore
from batchspec.errors import UsageError
from batchspec.replay.costs import CostTable, read_costs
from batchspec.replay.growing import Growing
from batchspec.replay.logs import Machine
from batchspec.replay.passes import PlainPass
from batchspec.replay.recorded import Recorded
from batchspec.replay.schedule import Schedule
from batchspec.request import Request
from batchspec.testing import TableModel
from tests.core.runs import ask, checked_engine, plans_of, serve
from tests.core.workloads import LETTERS, prone_table

from .logs import by_lookups, recorded_in, write_log

MODEL = TableModel(3 * prone_table(3, end=-1.0, is_poisoned=False))
COSTS = read_costs("0.01,0.001")


def requests_of(number: int) -> list[Request]:
    prompts = [[LETTERS[index * step % 6] for step in range(1, 2 + index * 5 % 17)] for index in range(number)]
    return [
        ask(prompt, index=i, max_tokens=1 + i * 7 % 19, temperature=0.8 * (i % 2)) for i, prompt in enumerate(prompts)
    ]


def served(drafter: Drafter, machine: Machine) -> tuple[EngineCore, list[dict[str, Any]]]:
    engine = checked_engine(
        model=MODEL,
        drafter=drafter,
        level=Level.NONE if isinstance(drafter, NoDrafter) and not drafter.num_spec_tokens else Level.DETAILED,
        max_num_seqs=machine.max_num_seqs,
        max_num_batched_tokens=machine.max_num_batched_tokens,
        max_model_len=64,
    )
    return engine, serve(engine, requests_of(40))


def real_seconds(engine: EngineCore) -> float:
    return sum(0.01 + 0.001 * plan.num_tokens for plan in plans_of(engine))


def outputs_of(tmp_path: Path, records: list[dict[str, Any]]) -> list[Recorded]:
    return recorded_in(write_log(tmp_path / "log.jsonl", records))


@pytest.mark.parametrize("max_num_seqs", [1, 3, 20, 64])
@pytest.mark.parametrize("budget", [5, 16, 64])
def test_a_job_takes_what_its_steps_take(tmp_path: Path, max_num_seqs: int, budget: int) -> None:
    """The simulated steps have as many rows as those of the real scheduler, one after another."""
    machine = Machine(max_num_seqs=max_num_seqs, max_num_batched_tokens=budget, max_model_len=64)
    drafter = NgramDrafter(num_spec_tokens=3, prompt_lookup_min=1, prompt_lookup_max=3)
    engine, records = served(drafter, machine)
    seconds = Growing(dtype=np.float64)
    schedule = Schedule(COSTS, machine, seconds=seconds)
    for one in outputs_of(tmp_path, records):
        schedule.add(one, by_lookups(one, k=3, low=1, high=3, room=63 - len(one.prompt)))
    schedule.finish()
    assert seconds.array.sum() == pytest.approx(real_seconds(engine), rel=1e-9)
    assert len(seconds.array) == 40
    assert (seconds.array > 0).all()


@pytest.mark.parametrize("max_num_seqs", [1, 6])
def test_a_job_without_drafts_takes_what_its_steps_take(tmp_path: Path, max_num_seqs: int) -> None:
    machine = Machine(max_num_seqs=max_num_seqs, max_num_batched_tokens=16, max_model_len=64)
    engine, records = served(NoDrafter(), machine)
    seconds = Growing(dtype=np.float64)
    plain = PlainPass(Schedule(COSTS, machine, seconds=seconds))
    for one in outputs_of(tmp_path, records):
        plain.take(one)
    plain.finish()
    assert seconds.array.sum() == pytest.approx(real_seconds(engine), rel=1e-9)


def seconds_of(costs: CostTable, *, num_prompt_tokens: int, num_output_tokens: int) -> float:
    """What one sequence takes without drafts."""
    seconds = Growing(dtype=np.float64)
    machine = Machine(max_num_seqs=1, max_num_batched_tokens=1000, max_model_len=None)
    plain = PlainPass(Schedule(costs, machine, seconds=seconds))
    tokens = np.zeros(1000, dtype=np.int64)
    prompt, output = tokens[:num_prompt_tokens], tokens[:num_output_tokens]
    plain.take(Recorded(prompt=prompt, output=output, cut=tokens[:0], custom_id="a", index=0))
    plain.finish()
    return float(seconds.array.sum())


def test_a_line() -> None:
    assert seconds_of(COSTS, num_prompt_tokens=5, num_output_tokens=3) == pytest.approx(0.015 + 2 * 0.011)
    assert seconds_of(read_costs("1e-2, .001"), num_prompt_tokens=5, num_output_tokens=1) == pytest.approx(0.015)


def bench_json(path: Path, cells: list[tuple[int, int, float]]) -> Path:
    """A benchmark's file with these (rows, context, seconds), a tenth of them for choosing tokens."""
    document = {
        "steps": {
            "cells": [
                {
                    "rows": rows,
                    "context": context,
                    "forward_seconds": {"median": 0.9 * seconds},
                    "judge_seconds": {"median": 0.1 * seconds},
                }
                for rows, context, seconds in cells
            ]
        }
    }
    path.write_text(json.dumps(document))
    return path


def test_a_benchmark_between_and_beyond_its_sizes(tmp_path: Path) -> None:
    cells = [(1, 100, 1.0), (3, 100, 2.0), (3, 100, 4.0), (1, 300, 3.0), (3, 300, 5.0)]
    costs = read_costs(str(bench_json(tmp_path / "bench.json", cells)))
    assert costs.rows.tolist() == [1, 3]
    assert costs.contexts.tolist() == [100, 300]
    np.testing.assert_allclose(costs.seconds, [[1, 3], [3, 5]])
    # Prompt: 2 rows at context 0, taken for 100. Then one row each behind 200 and 201 tokens.
    found = seconds_of(costs, num_prompt_tokens=200, num_output_tokens=3)
    prompt = 1 + (200 - 1) * (3 - 1) / 2
    assert found == pytest.approx(prompt + 2 + (1 + 2 * 101 / 200))
    assert read_costs(str(tmp_path)).origin.endswith("bench.json")


def test_beyond_the_largest_size_time_never_falls(tmp_path: Path) -> None:
    costs = read_costs(str(bench_json(tmp_path / "bench.json", [(1, 1, 2.0), (4, 1, 1.0)])))
    assert seconds_of(costs, num_prompt_tokens=100, num_output_tokens=1) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0,0", "takes some time"),
        ("1e999,1", "takes some time"),
        ("1e6,0", "takes some time"),
        ("backwards.json", "has no step times"),
        ("endless.json", "has no step times"),
        ("nowhere.json", "cannot be read"),
        ("1", "is a single number"),
        ("-1,2", "cannot be read"),
        ("torn.json", "is not JSON"),
        ("other.json", "has no step times"),
        ("none.json", "has no step times"),
        ("one.json", "too few sizes"),
        ("ragged.json", "too few sizes"),
    ],
)
def test_costs_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torn.json").write_text("{")
    Path("other.json").write_text("{}")
    Path("none.json").write_text('{"steps": null}')
    bench_json(Path("one.json"), [(1, 1, 1.0)])
    bench_json(Path("backwards.json"), [(1, 1, 1.0), (2, 1, -1.0)])
    bench_json(Path("endless.json"), [(1, 1, 1.0), (2, 1, 1e300)])
    bench_json(Path("ragged.json"), [(1, 1, 1.0), (2, 1, 1.0), (1, 5, 1.0)])
    with pytest.raises(UsageError, match=expected):
        read_costs(text)
