"""A llama of a billion random weights, made on the device: for speed, not for texts."""

from typing import Any, cast

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from batchspec.model.gate import admit
from batchspec.model.generation import GenerationDefaults
from batchspec.model.load import LoadedModel
from batchspec.model.modules import ModuleNetwork
from batchspec.model.tokenizer import Tokenizer
from batchspec.testing import ByteTokenizer

from .stage import Stage

__all__ = ["large_model", "module_of"]

_SIZES: dict[str, Any] = {
    "vocab_size": 128256,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "eos_token_id": None,
}
_SMALL = {"vocab_size": 300, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
_SMALL |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}


def large_model(stage: Stage) -> LoadedModel:
    """Return it as if it had been loaded; texts are bytes."""
    config = AutoConfig.for_model("llama", **(_SIZES if stage.is_large else _SIZES | _SMALL))
    dtype = torch.float32 if stage.is_rehearsal else torch.bfloat16
    torch.manual_seed(0)
    with stage.device:
        module: Any = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager")
    module = module.eval().requires_grad_(False)
    return LoadedModel(
        kv_dtype=dtype,
        bytes_per_token=admit(module, device=stage.device),
        network=ModuleNetwork(module),
        tokenizer=cast(Tokenizer, ByteTokenizer()),
        name="random",
        device=stage.device,
        dtype=dtype,
        dtype_reason="",
        context_length=config.max_position_embeddings,
        eos_ids=frozenset(),
        fingerprint=None,
        generation_defaults=GenerationDefaults(values={}, unused=()),
    )


def module_of(loaded: LoadedModel) -> Any:
    """Return the transformers module."""
    assert isinstance(loaded.network, ModuleNetwork)
    return loaded.network.module
