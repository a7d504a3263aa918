"""The sizes that a config.json states, checked before anything divides by one of them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batchspec.errors import ModelError
from batchspec.model.locate import ModelSource

__all__ = ["SIZES", "check_sizes"]

SIZES = (
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "vocab_size",
)


def check_sizes(source: ModelSource, *, model: str | Path) -> None:
    """Refuse a local configuration whose sizes no model can have; what it does not state is not looked at.

    Args:
        source: where the model is; hub ids and GGUF files are passed over.
        model: how the user named it, for the message.

    Raises:
        ModelError: config.json is not an object, or names a size that is not a whole number of 1 or more (a list of
            them where layers differ), or query heads that do not divide into the key and value heads.
    """
    path = Path(source.path) / "config.json"
    if not source.files or "gguf_file" in source.options:
        return
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"--model {model}: its config.json cannot be read: {error}.") from None
    if not isinstance(config, dict):
        raise ModelError(f"--model {model}: its config.json is not an object; give a Hugging Face model directory.")
    text = config.get("text_config")
    for part in (config, text if isinstance(text, dict) else {}):
        fault = _fault(part)
        if fault:
            raise ModelError(f"--model {model}: config.json states {fault}.")


def _fault(config: Mapping[str, Any]) -> str:
    """Return what is wrong with the sizes and what would be right; empty if nothing is."""
    stated = {name: config[name] for name in SIZES if config.get(name) is not None}
    for name, value in stated.items():
        for number in value if isinstance(value, list) else [value]:
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                return f"{name} {json.dumps(number)}; a whole number of 1 or more is needed"
    heads, shared = stated.get("num_attention_heads"), stated.get("num_key_value_heads")
    if isinstance(heads, int) and isinstance(shared, int) and heads % shared:
        return f"num_attention_heads {heads}; a multiple of num_key_value_heads ({shared}) is needed"
    return ""
