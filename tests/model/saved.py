"""Tiny model directories, as a user would have them."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from .tiny import build


def byte_tokenizer(**options: Any) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer without merges: 256 bytes, then <s> and </s>."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={byte: index for index, byte in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", **options)


def save(directory: Path, model_type: str = "llama", **changes: Any) -> Path:
    """Write a random model of 300 tokens with its tokenizer; return the directory."""
    module = build(model_type, **({"vocab_size": 300} | changes))
    module.generation_config.eos_token_id = 2
    module.save_pretrained(directory)
    byte_tokenizer().save_pretrained(directory)
    return directory


def edit_config(directory: Path, **changes: Any) -> None:
    """Change keys of config.json; None removes a key."""
    path = directory / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
