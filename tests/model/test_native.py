"""Our own layers compute what transformers' modules compute, or say that they do not know the model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from batchspec.errors import ModelError
from batchspec.model.linear import can_pack
from batchspec.model.load import load_model
from batchspec.model.locate import locate
from batchspec.model.native.families import Unknown, decoder_shape
from batchspec.model.native.loading import load_native

from .by_hand import Pages
from .generating import CPU, prompts_of
from .saved import edit_config, save

LONG = 40
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_CAPS = {"final_logit_softcapping": 5.0, "attn_logit_softcapping": 1.5}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama with biases": ("llama", {"attention_bias": True}),
    "llama with a tied head": ("llama", {"tie_word_embeddings": True}),
    "llama of odd sizes": ("llama", {"hidden_size": 40, "intermediate_size": 53}),
    "llama 3.1": ("llama", {"rope_parameters": _LLAMA3}),
    "llama, linear": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0}}),
    "mistral": ("mistral", {}),
    "mistral without a window": ("mistral", {"sliding_window": None}),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {}),
    "gemma2": ("gemma2", _CAPS),
    "gemma3": ("gemma3_text", {}),
}


def saved_model(directory: Path, name: str, dtype: torch.dtype) -> Path:
    """Write a random model; biases and norms, which begin as zeros and ones, get random values, too."""
    model_type, changes = MODELS[name]
    save(directory, model_type, **changes)
    module = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    generator = torch.Generator().manual_seed(3)
    for key, parameter in module.named_parameters():
        if key.endswith("bias") or "norm" in key:
            parameter.data += torch.randn(parameter.shape, generator=generator) * 0.3
    module.to(dtype).save_pretrained(directory)
    return directory


def native_logits(directory: Path, prompt: list[int], *, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return logits (prompt, vocabulary) from our layers, in three chunks over scattered pages."""
    parts = load_native(locate(directory), dtype=dtype, device=CPU)
    pages = Pages(parts.network, dtype=parts.kv_dtype)
    sequence = pages.sequence(prompt)
    bounds = [(0, 1), (1, 18), (18, LONG)]
    return torch.cat([pages.forward((sequence, start, end, end - start))[0] for start, end in bounds])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["16 bits", "32 bits"])
@pytest.mark.parametrize("name", MODELS)
def test_the_logits_are_those_of_transformers(tmp_path: Path, name: str, dtype: torch.dtype) -> None:
    saved_model(tmp_path, name, dtype)
    module = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, attn_implementation="eager").eval()
    (prompt,) = prompts_of(LONG)
    with torch.inference_mode():
        expected = module(input_ids=torch.tensor([prompt]), use_cache=False).logits[0]
    found = native_logits(tmp_path, prompt)
    assert float((found - expected).abs().max()) < 2e-5 * float(expected.abs().max())


@pytest.mark.parametrize("name", MODELS)
def test_in_bfloat16_they_are_near(tmp_path: Path, name: str) -> None:
    saved_model(tmp_path, name, torch.bfloat16)
    try:
        found = native_logits(tmp_path, prompts_of(LONG)[0], dtype=torch.bfloat16)
    except Unknown:
        pytest.skip("this processor has no products of bfloat16")
    expected = native_logits(tmp_path, prompts_of(LONG)[0])
    off = float((found - expected).abs().max() / expected.abs().max())
    assert 1e-5 < off < 0.05


@pytest.mark.parametrize("name", MODELS)
def test_the_last_layer_is_computed_for_the_wanted_rows_alone_and_to_the_same_bits(tmp_path: Path, name: str) -> None:
    saved_model(tmp_path, name, torch.float32)
    network = load_native(locate(tmp_path), dtype=torch.float32, device=CPU).network
    prompts = prompts_of(LONG, 21, 9)
    whole = Pages(network)
    everything = whole.forward(*((whole.sequence(each), 0, len(each), len(each)) for each in prompts))
    some = Pages(network)
    found = some.forward(*((some.sequence(each), 0, len(each), n) for each, n in zip(prompts, (3, 0, 1), strict=True)))
    assert [len(each) for each in found] == [3, 0, 1]
    assert torch.equal(found[0], everything[0][-3:])
    assert torch.equal(found[2], everything[2][-1:])


def test_it_is_taken_where_it_knows_the_model(tmp_path: Path) -> None:
    assert load_model(save(tmp_path / "a"), device="cpu").network.implementation == "batchspec"
    assert load_model(save(tmp_path / "b"), device="cpu", impl="transformers").network.implementation == "transformers"
    assert load_model(save(tmp_path / "c", "phi"), device="cpu").network.implementation == "transformers"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"a_new_key": 1}, "the key 'a_new_key'"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"mlp_bias": True}, "mlp_bias True"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0}}, "rope_type 'yarn'"),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
            "partial_rotary_factor",
        ),
        ({"rope_parameters": None}, "'rope_theta' not being stated"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "LlamaForSequenceClassification"),
        ({"quantization_config": {"bits": 4}}, "the key 'quantization_config'"),
        ({"model_type": "nemotron"}, "of type 'nemotron'"),
    ],
)
def test_what_it_does_not_know_it_leaves(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    save(tmp_path)
    edit_config(tmp_path, **changes)
    with pytest.raises(Unknown) as caught:
        decoder_shape(json.loads((tmp_path / "config.json").read_bytes()))
    assert reason in str(caught.value)


def test_the_former_way_of_writing_rotary_settings(tmp_path: Path) -> None:
    save(tmp_path)
    edit_config(tmp_path, rope_parameters=None, rope_theta=500.0, rope_scaling={"type": "linear", "factor": 2.0})
    shape = decoder_shape(json.loads((tmp_path / "config.json").read_bytes()))
    assert {(rotary.theta, rotary.factor, rotary.llama3) for rotary in shape.rotary} == {(500.0, 2.0, None)}


def test_a_tensor_that_is_left_over(tmp_path: Path) -> None:
    save(tmp_path, attention_bias=True)
    edit_config(tmp_path, num_hidden_layers=1)
    with pytest.raises(Unknown, match=r"the tensor model\.layers\.1\."):
        load_native(locate(tmp_path), dtype=torch.float32, device=CPU)


def test_asked_for_and_not_possible(tmp_path: Path) -> None:
    save(tmp_path, "phi")
    with pytest.raises(ModelError, match=r"--model-impl batchspec: .* because of \['PhiForCausalLM'\]"):
        load_model(tmp_path, device="cpu", impl="batchspec")
    with pytest.raises(ModelError, match="--model-impl 'jax' is not known; choose auto, batchspec, transformers"):
        load_model(tmp_path, device="cpu", impl="jax")


def test_what_it_tells_about_itself(tmp_path: Path) -> None:
    save(tmp_path, tie_word_embeddings=True)
    native = load_model(tmp_path, device="cpu")
    hosted = load_model(tmp_path, device="cpu", impl="transformers")
    assert sorted(native.network.linear_shapes()) == sorted([(64, 32), (96, 32), (32, 32), (32, 48)] * 2 + [(300, 32)])
    assert hosted.network.linear_shapes()[-1] == native.network.linear_shapes()[-1] == (300, 32)
    assert native.network.num_parameters == hosted.network.num_parameters - 5 * 32  # norms are not counted
    assert native.bytes_per_token == hosted.bytes_per_token
    assert native.network.windows == hosted.network.windows == (0, 0)
    assert (native.eos_ids, native.context_length) == (hosted.eos_ids, hosted.context_length)


@pytest.mark.skipif(not can_pack("half"), reason="torch has no 16-bit kernels here")
def test_short_weights_stay_short(tmp_path: Path) -> None:
    wide, short = save(tmp_path / "wide"), saved_model(tmp_path / "short", "llama", torch.bfloat16)
    sizes = [load_model(path, device="cpu").network.weight_bytes for path in (wide, short)]
    assert sizes[0] == 2 * sizes[1]
