"""Engines on the embedded model, which is loaded once."""

from collections.abc import Callable
from typing import Any

import pytest

from batchspec import Engine, launch
from batchspec.model.load import LoadedModel, load_model

MakeEngine = Callable[..., Engine]


@pytest.fixture(scope="session")
def embedded() -> LoadedModel:
    return load_model(device="cpu")


@pytest.fixture
def make_engine(embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> MakeEngine:
    """Return a function that makes an engine on the embedded model without loading it again."""
    monkeypatch.setattr(launch, "load_model", lambda *_, **__: embedded)
    usual: dict[str, Any] = {"device": "cpu", "max_num_seqs": 4, "level": "summary"}
    return lambda **settings: Engine(**(usual | settings))


@pytest.fixture
def engine(make_engine: MakeEngine) -> Engine:
    return make_engine()


def prompt(name: str, **body: Any) -> dict[str, Any]:
    """A completion whose drafts match now and then."""
    body = {"prompt": "Monday, Tuesday, Monday, Tuesday, Monday,", "max_tokens": 12, "ignore_eos": True} | body
    return {"custom_id": name, "method": "POST", "url": "/v1/completions", "body": body}


def without_time(value: Any) -> Any:
    """The same record or chunk without the time at which it was made."""
    if isinstance(value, list):
        return [without_time(item) for item in value]
    if isinstance(value, dict):
        return {key: without_time(item) for key, item in value.items() if key != "created"}
    return value
