"""A loaded embedded model, shared by all tests, and a function that runs a job on some lines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig
from batchspec.job import run as run_module
from batchspec.job.outcome import JobOutcome
from batchspec.job.run import run_job
from batchspec.job.settings import JobSettings
from batchspec.model.load import LoadedModel, load_model

RunLines = Callable[..., tuple[JobOutcome, list[dict[str, Any]]]]


@pytest.fixture(scope="session")
def embedded() -> LoadedModel:
    return load_model(device="cpu")


@pytest.fixture
def run_lines(tmp_path: Path, embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> RunLines:
    """Return a function that runs a job over rows and gives back its outcome and its records."""
    monkeypatch.setattr(run_module, "load_model", lambda *_, **__: embedded)

    def run(rows: list[Any], *, name: str = "input", **settings: Any) -> tuple[JobOutcome, list[dict[str, Any]]]:
        path = tmp_path / f"{name}.jsonl"
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("".join(line + "\n" for line in lines))
        defaults: dict[str, Any] = {
            "run_dir": tmp_path / "run",
            "level": Level.DETAILED,
            "device": "cpu",
            "speculative": SpeculativeConfig(),
            "max_num_seqs": 8,
        }
        outcome = run_job(JobSettings(input=str(path), **(defaults | settings)))
        return outcome, read_responses(Path(defaults["run_dir"] if "run_dir" not in settings else settings["run_dir"]))

    return run


def read_responses(run_dir: Path) -> list[dict[str, Any]]:
    with (run_dir / "responses.jsonl").open() as file:
        return [json.loads(line) for line in file]
