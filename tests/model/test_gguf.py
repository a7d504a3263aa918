"""A GGUF file, written here from a tiny random Llama, loads and gives the Llama's own tokens."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchspec.model.load import load_model

from .generating import engine_for, generate_alone, generate_paged, module_of, prompts_of
from .saved import byte_tokenizer
from .tiny import build

gguf = pytest.importorskip("gguf", reason="reading GGUF needs the gguf extra")
pytest.importorskip("accelerate", reason="reading GGUF needs the gguf extra")

_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_NAMES |= {f"model.layers.{i}.{ours}": f"blk.{i}.{theirs}" for i in range(2) for ours, theirs in _LAYER.items()}


def _interleaved(weight: Any, num_heads: int) -> Any:
    """Return query or key weights in the order of GGUF's rotary embedding, which pairs neighbours, not halves."""
    return weight.reshape(num_heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(path: Path, module: Any) -> None:
    config = module.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    tokens = sorted((index, token) for token, index in byte_tokenizer().get_vocab().items())
    tokens.append((len(tokens), "ab"))  # a tokenizer of this kind has merges
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([token for _, token in tokens])
    writer.add_token_types([1] * 256 + [3, 3, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, tensor in module.state_dict().items():
        stem = name.removesuffix(".weight")
        weight = tensor.numpy()
        num_heads = heads.get(stem.rsplit(".", 1)[-1])
        writer.add_tensor(f"{_NAMES[stem]}.weight", _interleaved(weight, num_heads) if num_heads else weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_gguf_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    module = build("llama", vocab_size=259, rms_norm_eps=1e-6)
    write_gguf(tmp_path / "tiny.gguf", module)
    loaded = load_model(tmp_path / "tiny.gguf", device="cpu")
    assert capfd.readouterr() == ("", "")
    assert (loaded.name, loaded.context_length, loaded.eos_ids) == ("tiny", 128, frozenset({257}))
    assert loaded.fingerprint is not None
    prompts = prompts_of(11, 5)
    expected = generate_alone(module, prompts, max_tokens=8)
    assert generate_paged(engine_for(module_of(loaded)), prompts, max_tokens=8) == expected
    assert np.array_equal(module_of(loaded).state_dict()["lm_head.weight"], module.lm_head.weight)
