"""One model for several engines: loaded once, the same answers, and what was settled then cannot be set again."""

import pytest

from batchspec import Engine, Model, launch
from batchspec.errors import UsageError
from batchspec.model.load import LoadedModel

from .conftest import prompt, without_time


@pytest.fixture
def loads(embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was loaded, in turn."""
    names: list[object] = []

    def load(name: object, **_: object) -> LoadedModel:
        names.append(name)
        return embedded

    monkeypatch.setattr(launch, "load_model", load)
    return names


def test_engines_share_a_model_one_after_another(loads: list[object]) -> None:
    model = Model(device="cpu")
    rows = [prompt(f"{i}", temperature=0.8) for i in range(4)]
    answers = []
    for config in ({"method": "none"}, {"method": "ngram", "num_speculative_tokens": 5}):
        records = list(Engine(model, speculative_config=config).run(rows))
        answers.append([without_time(record) for record in records])
    assert answers[0] == answers[1]
    assert len(loads) == 1


def test_a_model_says_what_auto_came_to(loads: list[object]) -> None:
    model = Model(device="cpu")
    engine = Engine(model)
    assert model.resolved == {name: engine.resolved[name] for name in model.resolved}
    assert model.resolved["dtype"] == "float32"


def test_what_was_settled_with_the_model_is_refused(loads: list[object]) -> None:
    with pytest.raises(UsageError, match="dtype was settled when the model was loaded: give it to Model"):
        Engine(Model(device="cpu"), dtype="bfloat16")
