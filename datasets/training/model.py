"""Sizes of the two models, and how their folders are written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from datasets.training.tokenizer import CONTEXT, VOCAB_SIZE

PAD_ID, BOS_ID, END_ID = 0, 1, 2
SHAPES = {
    "target": {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 8, "num_attention_heads": 6},
    "draft": {"hidden_size": 128, "intermediate_size": 336, "num_hidden_layers": 2, "num_attention_heads": 4},
}


def build(kind: str) -> LlamaForCausalLM:
    """Return a freshly initialised model; call torch.manual_seed first."""
    config = LlamaConfig(
        vocab_size=VOCAB_SIZE,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=END_ID,
        **SHAPES[kind],
    )
    return LlamaForCausalLM(config)


def export(model: LlamaForCausalLM, tokenizer_folder: Path, folder: Path) -> None:
    """Write a Hugging Face folder with weights in bfloat16 and the tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = LlamaForCausalLM(model.config)
    copy.load_state_dict(model.state_dict())
    copy.generation_config = GenerationConfig(
        bos_token_id=BOS_ID, eos_token_id=END_ID, pad_token_id=PAD_ID, do_sample=False
    )
    cast(LlamaForCausalLM, copy.to(dtype=torch.bfloat16)).save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    for path in tokenizer_folder.iterdir():
        shutil.copyfile(path, folder / path.name)
