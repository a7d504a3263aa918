"""A loaded embedded model, shared by all tests, and a function that runs a job on some lines."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from batchspec import launch
from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig
from batchspec.job.outcome import JobOutcome
from batchspec.job.run import run_job
from batchspec.job.settings import JobSettings
from batchspec.model.load import LoadedModel, load_model
from batchspec.settings import EngineSettings

RunLines = Callable[..., tuple[JobOutcome, list[dict[str, Any]]]]


@pytest.fixture(scope="session")
def embedded() -> LoadedModel:
    return load_model(device="cpu")


@pytest.fixture
def run_lines(tmp_path: Path, embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> RunLines:
    """Return a function that runs a job over rows and gives back its outcome and its records."""
    monkeypatch.setattr(launch, "load_model", lambda *_, **__: embedded)

    def run(rows: list[Any], *, name: str = "input", **settings: Any) -> tuple[JobOutcome, list[dict[str, Any]]]:
        path = tmp_path / f"{name}.jsonl"
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("".join(line + "\n" for line in lines))
        wanted: dict[str, Any] = {"run_dir": tmp_path / "run", "level": Level.DETAILED, "device": "cpu"}
        wanted |= {"input": str(path), "speculative": SpeculativeConfig(), "max_num_seqs": 8} | settings
        of_engine = {item.name: wanted.pop(item.name) for item in fields(EngineSettings) if item.name in wanted}
        outcome = run_job(JobSettings(engine=EngineSettings(**of_engine), **wanted))
        return outcome, read_responses(wanted["run_dir"])

    return run


def read_responses(run_dir: Path) -> list[dict[str, Any]]:
    with (run_dir / "responses.jsonl").open() as file:
        return [json.loads(line) for line in file]
