"""From a model directory to a decoder, without importing transformers' modelling code."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from batchspec.model.linear import choose_packing
from batchspec.model.locate import ModelSource
from batchspec.model.native.checkpoint import Checkpoint
from batchspec.model.native.decoder import Decoder
from batchspec.model.native.families import Unknown, decoder_shape
from batchspec.model.native.screening import screen_for
from batchspec.model.native.weights import head_name, read_weights
from batchspec.model.network import Parts
from batchspec.model.tokenizer_files import read_tokenizer

__all__ = ["load_native"]


def load_native(source: ModelSource, *, dtype: torch.dtype, device: torch.device) -> Parts:
    """Return a decoder with its tokenizer.

    Args:
        source: must be a directory.
        dtype: of the factors in matrix products.
        device: must be the CPU.

    Raises:
        Unknown: something about the model is not known here.
    """
    directory = Path(source.path)
    if device.type != "cpu" or dtype not in (torch.float32, torch.bfloat16):
        raise Unknown(f"{dtype} on {device.type}")
    if not (directory / "config.json").is_file() or "gguf_file" in source.options:
        raise Unknown("not being a directory of safetensors")
    try:
        config = json.loads((directory / "config.json").read_bytes())
        shape = decoder_shape(config)
        checkpoint = Checkpoint(directory)
        packing = choose_packing(checkpoint.dtypes(), dtype=dtype)
        if packing is None:
            raise Unknown(f"{dtype} on this processor")
        weights = read_weights(checkpoint, shape, packing=packing)
        tokenizer = read_tokenizer(source)
        screen = screen_for(Decoder(shape, weights, packing=packing), checkpoint.mapped(head_name(shape)), tokenizer)
    except (OSError, ValueError, TypeError, AttributeError, SafetensorError) as error:
        raise Unknown(f"{type(error).__name__}: {error}") from error
    return Parts(
        network=Decoder(shape, weights, packing=packing, screen=screen),
        tokenizer=tokenizer,
        vocab_size=shape.vocab_size,
        context_length=shape.context_length,
        eos_ids=(_generation_eos(directory), config.get("eos_token_id"), tokenizer.eos_token_id),
        kv_dtype=dtype,
        bytes_per_token=shape.kv_elements * dtype.itemsize,
    )


def _generation_eos(directory: Path) -> Any:
    path = directory / "generation_config.json"
    return json.loads(path.read_bytes()).get("eos_token_id") if path.is_file() else None
