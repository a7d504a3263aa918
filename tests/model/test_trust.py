"""Nothing that comes with a model runs code here unless the user says so."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from batchspec.errors import ModelError
from batchspec.model.load import load_model
from batchspec.model.trust import Trust, pickled_weights

from .saved import edit_config, save

CODE = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
from transformers import LlamaConfig
class OwnConfig(LlamaConfig):
    model_type = "own"
"""


class _Touch:
    """What a pickle file can hold: a call."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.fixture
def pickled(tmp_path: Path) -> Path:
    """A model whose weights are a pickle file."""
    directory = save(tmp_path / "tiny", "phi")
    weights = load_file(directory / "model.safetensors")
    torch.save(weights, directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    return directory


@pytest.mark.parametrize("impl", ["auto", "transformers"])
def test_pickled_weights_are_refused_unless_allowed(pickled: Path, impl: str) -> None:
    with pytest.raises(
        ModelError, match=r"not safetensors \(pytorch_model\.bin\).*or --allow-pickle if you trust them"
    ):
        load_model(pickled, device="cpu", impl=impl)
    loaded = load_model(pickled, device="cpu", impl=impl, trust=Trust(pickle=True))
    assert loaded.trust.notes("tiny") == [
        "--allow-pickle: weights of tiny may be pickle files, which can run code when read"
    ]


def test_a_pickle_that_calls_is_never_read(pickled: Path, tmp_path: Path) -> None:
    (pickled / "pytorch_model.bin").write_bytes(pickle.dumps(_Touch(tmp_path / "ran")))
    for trust in (Trust(), Trust(pickle=True)):
        with pytest.raises(ModelError):
            load_model(pickled, device="cpu", trust=trust)
    assert not (tmp_path / "ran").exists()


def test_safetensors_beside_a_pickle_are_taken(tmp_path: Path) -> None:
    directory = save(tmp_path / "tiny", "phi")
    (directory / "pytorch_model.bin").write_bytes(b"garbage")
    assert load_model(directory, device="cpu").network.implementation == "transformers"
    assert pickled_weights(directory.iterdir()) is None


def test_code_of_the_repository_is_run_only_if_asked(tmp_path: Path) -> None:
    directory = save(tmp_path / "tiny")
    (directory / "own.py").write_text(CODE)
    edit_config(directory, model_type="own", auto_map={"AutoConfig": "own.OwnConfig"})
    for impl in ("auto", "transformers"):
        with pytest.raises(ModelError, match="not run; give a model that transformers knows, or --trust-remote-code"):
            load_model(directory, device="cpu", impl=impl)
    assert not list(tmp_path.rglob("ran"))
    assert Trust(remote_code=True).notes("x") == [
        "--trust-remote-code: Python code from the repository of x runs with your rights"
    ]


def test_code_that_a_tokenizer_names_is_not_run(tmp_path: Path) -> None:
    directory = save(tmp_path / "tiny")
    (directory / "own.py").write_text(CODE)
    path = directory / "tokenizer_config.json"
    settings = json.loads(path.read_bytes()) | {"auto_map": {"AutoTokenizer": ["own.OwnConfig", None]}}
    path.write_text(json.dumps(settings | {"tokenizer_class": "OwnTokenizer"}))
    with pytest.raises(ModelError):
        load_model(directory, device="cpu")
    assert not list(tmp_path.rglob("ran"))
