"""Loading: what a model directory says, and a sentence for everything that can be wrong with it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from batchspec.errors import ModelError
from batchspec.model import locate as locating
from batchspec.model.hosted import _context_length
from batchspec.model.load import _eos_ids, load_model, resolve_device, resolve_dtype
from batchspec.model.modules import ModuleNetwork
from batchspec.model.network import Parts

from .generating import engine_for, generate_paged, module_of, prompts_of
from .saved import edit_config, save


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return save(tmp_path / "tiny")


def test_directory(saved: Path, capfd: pytest.CaptureFixture[str]) -> None:
    loaded = load_model(saved, device="cpu")
    assert (loaded.name, loaded.context_length, loaded.eos_ids) == ("tiny", 128, frozenset({2}))
    assert loaded.dtype is torch.float32
    assert loaded.fingerprint is not None
    assert len(loaded.fingerprint) == 64
    assert capfd.readouterr() == ("", "")


def test_fingerprint_follows_the_weights(saved: Path, tmp_path: Path) -> None:
    same, other = save(tmp_path / "a" / "tiny"), save(tmp_path / "b" / "tiny", initializer_range=0.1)
    prints = [locating.fingerprint(locating.locate(path).files) for path in (saved, same, other)]
    assert prints[0] == prints[1] != prints[2]


def test_bfloat16_generates(saved: Path) -> None:
    loaded = load_model(saved, device="cpu", dtype="bfloat16", impl="transformers")
    module = module_of(loaded)
    assert {parameter.dtype for parameter in module.parameters()} == {torch.bfloat16}
    prompts = prompts_of(9, 4)
    batched = generate_paged(engine_for(module), prompts, max_tokens=6)
    assert [len(answer) for answer in batched] == [6, 6]


def refused(path: Path | str) -> str:
    with pytest.raises(ModelError) as caught:
        load_model(path, device="cpu")
    message = str(caught.value)
    assert message.startswith(f"--model {path}")
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_missing_directory(tmp_path: Path) -> None:
    assert "there is no such directory" in refused(tmp_path / "nowhere")


def test_missing_gguf(tmp_path: Path) -> None:
    assert "there is no such file" in refused(tmp_path / "nowhere.gguf")


def test_directory_without_config(saved: Path) -> None:
    (saved / "config.json").unlink()
    assert "has no config.json" in refused(saved)


def test_config_that_is_not_json(saved: Path) -> None:
    (saved / "config.json").write_text("{")
    assert "config.json" in refused(saved)


def test_unknown_architecture(saved: Path) -> None:
    edit_config(saved, model_type="perceptron")
    assert "perceptron" in refused(saved)


def test_architecture_that_is_code_of_the_repository(saved: Path) -> None:
    code = {"AutoConfig": "configuration_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.Own"}
    edit_config(saved, model_type="own", auto_map=code)
    assert "code of its own repository, which is not run" in refused(saved)


def test_missing_tokenizer(saved: Path) -> None:
    for path in saved.glob("tokenizer*"):
        path.unlink()
    assert "tokenizer" in refused(saved).lower()


def test_missing_weights(saved: Path) -> None:
    (saved / "model.safetensors").unlink()
    assert "model.safetensors" in refused(saved)


def test_weights_cut_short(saved: Path) -> None:
    weights = (saved / "model.safetensors").read_bytes()
    (saved / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    assert "cannot be loaded" in refused(saved)


def test_weights_of_another_size(saved: Path) -> None:
    edit_config(saved, intermediate_size=24)
    message = refused(saved)
    assert "model.layers.0.mlp.down_proj.weight [32, 24], but the weights hold [32, 48]" in message
    assert "config.json" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", 0),
        ("num_attention_heads", 0),
        ("num_hidden_layers", -1),
        ("head_dim", 0.5),
        ("vocab_size", "many"),
        ("intermediate_size", [64, 0]),
        ("num_key_value_heads", True),
    ],
)
def test_sizes_that_no_model_has(saved: Path, name: str, value: Any) -> None:
    edit_config(saved, **{name: value})
    shown = json.dumps(value[1] if isinstance(value, list) else value)
    assert f"config.json states {name} {shown}; a whole number of 1 or more is needed" in refused(saved)


def test_sizes_of_a_part_of_the_configuration(saved: Path) -> None:
    edit_config(saved, text_config={"hidden_size": 0})
    assert "config.json states hidden_size 0" in refused(saved)


def test_query_heads_that_do_not_divide(saved: Path) -> None:
    edit_config(saved, num_key_value_heads=3)
    assert "num_attention_heads 4; a multiple of num_key_value_heads (3) is needed" in refused(saved)


def test_heads_of_another_width(saved: Path) -> None:
    edit_config(saved, head_dim=6)
    assert "self_attn.k_proj.weight [12, 32], but the weights hold [16, 32]" in refused(saved)


def test_heads_that_cannot_be_turned(saved: Path) -> None:
    edit_config(saved, head_dim=7)
    assert "`head_dim`=7" in refused(saved)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_weights_that_are_no_numbers(saved: Path, value: float) -> None:
    weights = load_file(saved / "model.safetensors")
    weights["model.layers.0.mlp.down_proj.weight"][0] = value
    weights["model.norm.weight"][:] = value
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="logits are NaN or infinite") as caught:
        load_model(saved, device="cpu", dtype="float16")
    assert "not supported" not in str(caught.value)


def test_weights_that_lack_a_layer(saved: Path) -> None:
    edit_config(saved, num_hidden_layers=3)
    assert "the weights lack 9 tensors, model.layers.2." in refused(saved)


@pytest.mark.parametrize("offline", [True, False])
def test_hub_id_without_network(monkeypatch: pytest.MonkeyPatch, offline: bool) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise ConnectionError("offline mode is enabled" if offline else "Name or service not known")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    message = refused("acme/no-such-model-here")
    assert "the hub cannot be reached" in message
    assert "local cache does not hold" in message


def test_gguf_without_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(locating, "find_spec", lambda name: None)
    assert "pip install 'batchspec[gguf]'" in refused(tmp_path / "tiny.gguf")


def test_gguf_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="reading GGUF needs the gguf extra")
    (tmp_path / "tiny.gguf").write_bytes(b"not a model")
    assert "cannot be loaded" in refused(tmp_path / "tiny.gguf")


def test_unknown_device_and_dtype() -> None:
    with pytest.raises(ModelError, match="choose auto, cpu or cuda"):
        resolve_device("tpu")
    with pytest.raises(ModelError, match="choose auto, float32, bfloat16, float16"):
        resolve_dtype("int8", device=torch.device("cpu"), source=locating.ModelSource(path="", name=""))


@pytest.mark.parametrize(
    ("model_type", "key"),
    [("llama", "max_position_embeddings"), ("gpt2", "n_positions"), ("opt", "max_position_embeddings")],
)
def test_context_length(model_type: str, key: str) -> None:
    assert _context_length(AutoConfig.for_model(model_type, **{key: 77})) == 77


def test_context_length_of_a_multimodal_configuration() -> None:
    config = AutoConfig.for_model("gemma3", text_config={"max_position_embeddings": 77})
    assert _context_length(config) == 77


def test_no_context_length() -> None:
    with pytest.raises(ModelError, match=r"config\.json names no context length"):
        _context_length(AutoConfig.for_model("bloom"))


def ends(*said: int | list[int] | None) -> Parts:
    """Return parts that say where a sequence ends: generation config, config, tokenizer."""
    network = ModuleNetwork(None)
    return Parts(
        network=network,
        tokenizer=None,
        vocab_size=10,
        context_length=9,
        eos_ids=said,
        kv_dtype=torch.float32,
        bytes_per_token=1,
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (([5, 6], 2, 3), {5, 6}),
        ((None, [2, 4], 3), {2, 4}),
        ((None, None, 3), {3}),
        ((0, 2, 3), {0}),
        ((None, None, None), set()),
    ],
)
def test_end_of_sequence(said: tuple[Any, ...], expected: set[int]) -> None:
    assert _eos_ids(ends(*said), model="m") == expected


def test_an_end_of_sequence_beyond_the_vocabulary_is_a_sentence() -> None:
    with pytest.raises(ModelError, match="--model m: its end-of-sequence token 10 is not in the vocabulary of 10;"):
        _eos_ids(ends([5, 10], 2, 3), model="m")
