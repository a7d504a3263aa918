"""A model as transformers' own modules, switched to paged attention."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from batchspec.errors import ModelError
from batchspec.model.gate import admit
from batchspec.model.locate import ModelSource
from batchspec.model.modules import ModuleNetwork
from batchspec.model.network import Parts
from batchspec.model.rope import freeze_frequencies
from batchspec.model.trust import Trust, pickled_weights

__all__ = ["load_hosted"]

_PICKLED = (
    "its weights are not safetensors ({}), and pickle files can run code when they are read; give safetensors or GGUF, "
    "or --allow-pickle if you trust them"
)


def load_hosted(
    source: ModelSource, *, model: str | Path, dtype: torch.dtype, device: torch.device, trust: Trust
) -> Parts:
    """Load a model with transformers and check that it computes the same on pages.

    Args:
        source: where it is.
        model: how the user named it, for messages.
        dtype: of the weights.
        device: where they go.
        trust: what of its files may run code.

    Raises:
        ModelError: when a part is missing, damaged, or asks for trust that is not given, or when its family cannot run
            on pages.
    """
    tokenizer, module = _read(source, model=model, dtype=dtype, trust=trust)
    module = module.to(device).eval().requires_grad_(False)
    context_length = _context_length(module.config)
    freeze_frequencies(module, max_length=context_length)
    text = module.config.get_text_config()
    return Parts(
        kv_dtype=torch.float32 if device.type == "cpu" else dtype,
        bytes_per_token=admit(module, device=device),
        network=ModuleNetwork(module),
        tokenizer=tokenizer,
        vocab_size=text.vocab_size,
        context_length=context_length,
        eos_ids=(getattr(module.generation_config, "eos_token_id", None), text.eos_token_id, tokenizer.eos_token_id),
        commit=getattr(module.config, "_commit_hash", None),
    )


def _read(source: ModelSource, *, model: str | Path, dtype: torch.dtype, trust: Trust) -> tuple[Any, Any]:
    """Return tokenizer and module, without progress bars, warnings or questions on the terminal.

    Raises:
        ModelError: when a part is missing, damaged, or asks for trust that is not given.
    """
    options = {"trust_remote_code": trust.remote_code} | source.options
    is_gguf = "gguf_file" in options
    pickled = None if trust.pickle or is_gguf else pickled_weights(source.files)
    if pickled is not None:
        raise ModelError(f"--model {model}: {_PICKLED.format(pickled)}.")
    weights = {} if trust.pickle or is_gguf else {"use_safetensors": True}
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(source.path, **options)
            module, report = AutoModelForCausalLM.from_pretrained(
                source.path,
                dtype=dtype,
                attn_implementation="eager",
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, with the sizes
                **weights,
                **options,
            )
    except Exception as error:
        raise ModelError(f"--model {model}: {source.doubt or _reason(error, is_local=bool(source.files))}.") from error
    for name, stored, expected in sorted(report["mismatched_keys"]):
        raise ModelError(
            f"--model {model}: config.json makes the tensor {name} {list(expected)}, but the weights hold "
            f"{list(stored)}; correct the sizes in config.json, or give the weights that belong to it."
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelError(f"--model {model}: the weights lack {len(missing)} tensors, {missing[0]} for one.")
    return tokenizer, module


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from writing to the terminal; one of its progress bars heeds no setting."""
    verbosity = transformers.logging.get_verbosity()
    has_bars = transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        if has_bars:
            transformers.logging.enable_progress_bar()


def _reason(error: BaseException, *, is_local: bool) -> str:
    """Return why loading failed, in a line."""
    if "trust_remote_code" in str(error):
        return (
            "its architecture is code of its own repository, which is not run; give a model that transformers knows, "
            "or --trust-remote-code if you have read that code"
        )
    if not is_local and isinstance(error, OSError) and "safetensors" in str(error):
        return _PICKLED.format("no .safetensors file is there")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    said = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return f"cannot be loaded, {type(error).__name__}: {said.removesuffix('.')}"


def _context_length(config: Any) -> int:
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx"):
        value = getattr(text, name, None)
        if isinstance(value, int) and value > 0:
            return value
    raise ModelError("the model's config.json names no context length; give a model with max_position_embeddings.")
