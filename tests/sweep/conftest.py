"""The embedded model, loaded once for all tests, and a function that sweeps over some rows."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from batchspec import launch
from batchspec.acceptance import Level
from batchspec.files import RowDefaults
from batchspec.job.settings import JobSettings
from batchspec.job.watch import Silent
from batchspec.model.load import LoadedModel, load_model
from batchspec.settings import EngineSettings
from batchspec.sweep.settings import SweepSettings
from batchspec.sweep.sweeping import SweepOutcome, run_sweep

RunGrid = Callable[..., SweepOutcome]
ROWS = [
    {
        "prompt": f"{i} Monday, Tuesday, Monday, Tuesday,",
        "id": f"r{i}",
        "category": "ab"[i % 2],
        "max_tokens": 8 + i % 5,
    }
    for i in range(8)
]


class Listening(Silent):
    """Remembers what is said."""

    def __init__(self, heard: list[str]):
        self._heard = heard

    def say(self, text: str) -> None:
        self._heard.append(text)


@pytest.fixture(scope="session")
def embedded() -> LoadedModel:
    return load_model(device="cpu")


@pytest.fixture
def loads(embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The models that were loaded."""
    found: list[object] = []

    def load(name: object, **_: object) -> LoadedModel:
        found.append(name)
        return embedded

    monkeypatch.setattr(launch, "load_model", load)
    return found


@pytest.fixture
def rows_path(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def sweep(rows_path: Path, tmp_path: Path, loads: list[object]) -> RunGrid:
    """Return a function that sweeps over the rows and gives back the outcome; ``heard`` takes what is said."""

    def run(*grids: str, heard: list[str] | None = None, by_category: bool = False, **settings: Any) -> SweepOutcome:
        wanted: dict[str, Any] = {"input": str(rows_path), "run_dir": tmp_path / "sweep", "device": "cpu"}
        wanted["engine"] = EngineSettings(level=settings.pop("level", Level.SUMMARY), max_model_len=96)
        requirements = settings.pop("requirements", ())
        chosen = SweepSettings.for_grids(grids, JobSettings(**(wanted | settings)))
        return run_sweep(
            chosen,
            requirements=requirements,
            by_category=by_category,
            watch=lambda: Listening([] if heard is None else heard),
        )

    return run


def names_of(outcome: SweepOutcome) -> Sequence[str]:
    assert outcome.document is not None
    return [point["point"] for point in outcome.document["points"]]


SEEDED = RowDefaults(temperature=0.8, run_seed=7)
