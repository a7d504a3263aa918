"""What a request is sampled with: its own word, then the caller's, then generation_config.json's, then OpenAI's."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from batchspec import Engine
from batchspec.errors import ModelError
from batchspec.files import RowDefaults
from batchspec.model.generation import read_generation_config
from batchspec.model.locate import EMBEDDED_TARGET

STATED = {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "repetition_penalty": 1.1, "max_new_tokens": 9}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The embedded model with an opinion on sampling."""
    path = shutil.copytree(EMBEDDED_TARGET, tmp_path / "model")
    own = json.loads((path / "generation_config.json").read_text())
    (path / "generation_config.json").write_text(json.dumps(own | STATED | {"do_sample": False, "min_p": None}))
    return path


def sampling_of(engine: Engine, **fields: Any) -> dict[str, Any]:
    (record,) = engine.run([{"prompt": "Once", **fields}])
    found: dict[str, Any] = record["sampling"]
    return found


def test_the_request_then_the_caller_then_the_model_then_openai(model: Path) -> None:
    engine = Engine(model, device="cpu", defaults=RowDefaults(top_p=0.8, max_tokens=4))
    sampling = sampling_of(engine, top_k=5)
    assert {name: sampling[name] for name in ("top_k", "top_p", "max_tokens", "temperature", "min_p")} == {
        "top_k": 5,
        "top_p": 0.8,
        "max_tokens": 4,
        "temperature": 0.6,
        "min_p": 0.0,
    }
    assert sampling["repetition_penalty"] == 1.1
    assert engine.resolved["sampling"] == {
        "max_tokens": 4,
        "temperature": 0.6,
        "top_p": 0.8,
        "top_k": 20,
        "min_p": 0.0,
        "repetition_penalty": 1.1,
    }
    assert engine.resolved["sampling_from"] == {
        "max_tokens": "given",
        "temperature": "generation_config",
        "top_p": "given",
        "top_k": "generation_config",
        "min_p": "openai",
        "repetition_penalty": "generation_config",
    }


def test_openai_passes_the_model_over(model: Path) -> None:
    engine = Engine(model, device="cpu", generation_config="openai")
    assert engine.resolved["sampling"]["temperature"] == 1.0
    assert set(engine.resolved["sampling_from"].values()) == {"openai"}
    assert sampling_of(engine)["max_tokens"] == 16


def test_another_directory_can_state_them(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"temperature": 0.3}')
    engine = Engine(device="cpu", generation_config=str(tmp_path))
    assert engine.resolved["sampling"]["temperature"] == 0.3
    with pytest.raises(ModelError, match="cannot be read"):
        Engine(device="cpu", generation_config=str(tmp_path / "nowhere"))


def test_a_wrong_value_is_a_sentence(model: Path) -> None:
    (model / "generation_config.json").write_text('{"temperature": "hot"}')
    with pytest.raises(ModelError, match="says temperature 'hot', not a number from 0 to 2; correct it or use"):
        Engine(model, device="cpu")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", True),
        ("temperature", -1),
        ("temperature", float("nan")),
        ("top_p", 0),
        ("top_k", 2.5),
        ("top_k", -2),
        ("min_p", 1.5),
        ("repetition_penalty", 0),
        ("repetition_penalty", float("inf")),
        ("max_new_tokens", 0),
        ("max_new_tokens", [20]),
    ],
)
def test_what_no_request_could_ask_is_wrong(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps({name: value}))
    with pytest.raises(ModelError, match=f"says {name} ") as caught:
        read_generation_config(path)
    assert str(caught.value).endswith("; correct it or use --generation-config openai.")


@pytest.mark.parametrize("text", ["{", "[1]", "null"])
def test_a_file_that_is_no_object_is_wrong(tmp_path: Path, text: str) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(text)
    with pytest.raises(ModelError, match="use --generation-config openai"):
        read_generation_config(path)


def test_null_counts_as_not_stated(tmp_path: Path) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text('{"temperature": null, "do_sample": true, "top_k": 50, "num_beams": 4}')
    assert read_generation_config(path).values == {"top_k": 50}


def test_what_is_not_heeded_is_named(tmp_path: Path) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text('{"num_beams": 4, "no_repeat_ngram_size": 0, "suppress_tokens": [5], "max_new_tokens": 9, "x": 1}')
    assert read_generation_config(path).unused == ("num_beams", "suppress_tokens")
    engine = Engine(device="cpu", generation_config=str(tmp_path))
    assert engine.resolved["generation_config_unused"] == ["num_beams", "suppress_tokens"]
