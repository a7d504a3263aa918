"""Random models of two layers, one for each family, small enough to build and run in a fraction of a second."""

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

VOCAB_SIZE = 97
_SIZES = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "initializer_range": 0.2,
}
_GPT2_SIZES = {"vocab_size": VOCAB_SIZE, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
_GPT2_SIZES |= {"bos_token_id": 1, "eos_token_id": 2}
_WINDOW = {"sliding_window": 6}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "norm_topk_prob": True}
_MIXED = {"layer_types": ["sliding_attention", "full_attention"]}

SUPPORTED: dict[str, dict[str, Any]] = {
    "llama": _SIZES,
    "mistral": _SIZES | _WINDOW,
    "qwen2": _SIZES,
    "qwen2_moe": _SIZES | _EXPERTS | {"shared_expert_intermediate_size": 16},
    "qwen3": _SIZES | {"head_dim": 8},
    "qwen3_moe": _SIZES | _EXPERTS | {"head_dim": 8},
    "gemma": _SIZES | {"head_dim": 8},
    "gemma2": _SIZES | _WINDOW | {"head_dim": 8, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 1.5},
    "gemma3_text": _SIZES | _WINDOW | _MIXED | {"head_dim": 8, "query_pre_attn_scalar": 8},
    "gpt2": _GPT2_SIZES,
    "gpt_bigcode": _GPT2_SIZES,
    "gpt_neox": {name: size for name, size in _SIZES.items() if name != "num_key_value_heads"},
    "opt": _SIZES | {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "phi": _SIZES,
    "phi3": _SIZES,
    "olmo2": _SIZES,
    "olmo3": _SIZES | _WINDOW,
    "glm": _SIZES | {"head_dim": 8},
    "granite": _SIZES,
    "cohere2": _SIZES | _WINDOW | _MIXED,
    "smollm3": _SIZES,
    "gpt_oss": _SIZES | _WINDOW | {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    "starcoder2": _SIZES | _WINDOW,
    "stablelm": _SIZES,
    "nemotron": _SIZES,
}

_CLASSIC = {"vocab_size": VOCAB_SIZE, "hidden_size": 32}
_STATES = _CLASSIC | {"num_hidden_layers": 2, "state_size": 4}
_LINEAR = {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
_LLAMA4 = {"attention_chunk_size": 8, "intermediate_size_mlp": 48, "no_rope_layers": [1, 0], "num_local_experts": 2}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mamba": (_STATES, "layers of type linear_attention"),
    "mamba2": (_STATES | {"num_heads": 8, "head_dim": 8, "n_groups": 1}, "layers of type linear_attention"),
    "lfm2": (_SIZES | {"layer_types": ["conv", "full_attention"]}, "layers of type conv"),
    "jamba": (
        _SIZES | {"num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
        "layers of type linear_attention",
    ),
    "qwen3_next": (
        _SIZES | _EXPERTS | _LINEAR | {"layer_types": ["linear_attention", "full_attention"]},
        "layers of type linear_attention",
    ),
    "llama4_text": (_SIZES | _LLAMA4 | {"head_dim": 8, "num_experts_per_tok": 1}, "layers of type chunked_attention"),
    "bloom": (_CLASSIC | {"n_layer": 2, "n_head": 4}, "does not use transformers' attention interface"),
    "falcon": (
        _CLASSIC | {"num_hidden_layers": 2, "num_attention_heads": 4},
        "does not use transformers' attention interface",
    ),
    "mpt": (
        {"vocab_size": VOCAB_SIZE, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 128},
        "does not use transformers' attention interface",
    ),
    "gpt_neo": (
        _CLASSIC | {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
        "does not use transformers' attention interface",
    ),
}


def build(model_type: str, **changes: Any) -> Any:
    """Return a seeded random float32 model in eval mode with eager attention, which never ends by itself."""
    sizes = SUPPORTED[model_type] if model_type in SUPPORTED else REFUSED[model_type][0]
    config = AutoConfig.for_model(model_type, **(sizes | changes))
    torch.manual_seed(0)
    module = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    module.generation_config.eos_token_id = None
    return module.eval().requires_grad_(False)
