"""Every supported family gives transformers' own greedy tokens from chunked, packed, drafted and preempted passes."""

import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from batchspec.errors import ModelError
from batchspec.model.gate import admit

from .generating import CPU, engine_for, generate_alone, generate_paged, prompts_of
from .tiny import REFUSED, SUPPORTED, build


@pytest.mark.parametrize("model_type", SUPPORTED)
def test_same_tokens_as_transformers(model_type: str) -> None:
    module = build(model_type)
    prompts = prompts_of(23, 5, 14, 9, 3)
    expected = generate_alone(module, prompts, max_tokens=12)
    assert len({token for answer in expected for token in answer}) > 5  # a constant answer would show nothing
    admit(module, device=CPU)
    answers = {tuple(prompt): answer for prompt, answer in zip(prompts, expected, strict=True)}
    engine = engine_for(module, answers, num_blocks=16)
    assert generate_paged(engine, prompts, max_tokens=12) == expected
    assert engine.progress.num_draft_tokens > engine.progress.num_accepted_draft_tokens > 0
    assert engine.scheduler.num_preemptions > 0


@pytest.mark.parametrize("model_type", REFUSED)
def test_refused_with_type_and_reason(model_type: str) -> None:
    _, reason = REFUSED[model_type]
    module = build(model_type)
    with pytest.raises(ModelError, match=reason) as caught:
        admit(module, device=CPU)
    assert str(caught.value).startswith(f"the model type {model_type!r} is not supported: ")
    assert str(caught.value).endswith(".")


def test_encoder_is_refused() -> None:
    config = T5Config(vocab_size=97, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    with pytest.raises(ModelError, match="the model type 't5' is not supported: it has an encoder"):
        admit(T5ForConditionalGeneration(config).eval(), device=CPU)


def test_dtype_is_restored_after_the_probe() -> None:
    module = build("llama").to(torch.bfloat16)
    weight = module.lm_head.weight.clone()
    assert admit(module, device=CPU) == 2 * 2 * 2 * 8 * 4  # layers, keys and values, heads, width, float32 bytes
    assert {parameter.dtype for parameter in module.parameters()} == {torch.bfloat16}
    assert torch.equal(module.lm_head.weight, weight)


def test_windows_are_restored_after_the_probe() -> None:
    module = build("gemma3_text", sliding_window=100)
    admit(module, device=CPU)
    assert [layer.self_attn.sliding_window for layer in module.model.layers] == [100, None]
    assert module.config.sliding_window == 100
