"""Loading a model directory, a hub id or a GGUF file into a model that runs on pages."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from batchspec.errors import ModelError
from batchspec.model.gate import admit
from batchspec.model.generation import GenerationDefaults, generation_defaults
from batchspec.model.grammar_tokenizer import grammar_tokenizer
from batchspec.model.locate import EMBEDDED_TARGET, ModelSource, fingerprint, locate
from batchspec.model.rope import freeze_frequencies
from batchspec.model.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

__all__ = ["LoadedModel", "load_model", "resolve_device", "resolve_dtype"]

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model that passed the gate, and what the engine needs to know about it.

    Attributes:
        module: the transformers model, switched to paged attention.
        tokenizer: its tokenizer.
        name: the directory's or hub's name, used in labels and bodies.
        device: where it runs.
        dtype: of the weights.
        context_length: the longest sequence the configuration allows.
        eos_ids: token ids that end a generation.
        bytes_per_token: of keys and values over all layers.
        fingerprint: hash over the files' names, sizes and edges; for a hub id the commit.
        generation_defaults: what its generation_config.json states.
    """

    module: torch.nn.Module
    tokenizer: Tokenizer
    name: str
    device: torch.device
    dtype: torch.dtype
    context_length: int
    eos_ids: frozenset[int]
    bytes_per_token: int
    fingerprint: str | None
    generation_defaults: GenerationDefaults

    def grammar_tokenizer(self) -> "LLTokenizer":
        """Return the vocabulary as llguidance reads it; raises as ``model.grammar_tokenizer`` does."""
        inner = self.tokenizer.inner
        return grammar_tokenizer(inner, num_vocabulary=len(inner), eos_ids=self.eos_ids)


def resolve_device(device: str) -> torch.device:
    """Return the device for ``auto``, ``cpu`` or ``cuda``; ModelError when there is no such device."""
    if device not in ("auto", "cpu", "cuda"):
        raise ModelError(f"--device {device!r} is not known; choose auto, cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise ModelError("--device cuda: torch sees no CUDA device here; use --device cpu or auto.")
    use_cuda = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if use_cuda else "cpu")


def resolve_dtype(dtype: str, *, device: torch.device) -> torch.dtype:
    """Return the torch dtype; ``auto`` is float32 on the CPU and bfloat16 on CUDA."""
    if dtype == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if dtype not in _DTYPES:
        raise ModelError(f"--dtype {dtype!r} is not known; choose auto, {', '.join(_DTYPES)}.")
    return _DTYPES[dtype]


def load_model(
    model: str | Path = EMBEDDED_TARGET,
    *,
    device: str = "auto",
    dtype: str = "auto",
    generation_config: str = "auto",
) -> LoadedModel:
    """Load a model, switch it to paged attention and check that it still computes the same.

    Args:
        model: a directory, a hub id, or a ``.gguf`` file.
        device: auto, cpu or cuda.
        dtype: auto, float32, bfloat16 or float16.
        generation_config: where sampling defaults come from: ``auto`` for the model's own generation_config.json,
            ``openai`` for no file, or a directory with such a file.

    Raises:
        ModelError: when it cannot be read, when its family cannot run on pages, or when a sampling default is wrong.
    """
    where = resolve_device(device)
    kind = resolve_dtype(dtype, device=where)
    source = locate(model)
    defaults = generation_defaults(source, choice=generation_config)
    tokenizer, module = _read(source, model=model, dtype=kind)
    module = module.to(where).eval().requires_grad_(False)
    context_length = _context_length(module.config)
    freeze_frequencies(module, max_length=context_length)
    bytes_per_token = admit(module, device=where)
    return LoadedModel(
        module=module,
        tokenizer=Tokenizer(tokenizer, num_embeddings=module.config.get_text_config().vocab_size),
        name=source.name,
        device=where,
        dtype=kind,
        context_length=context_length,
        eos_ids=_eos_ids(module, tokenizer, model=model),
        bytes_per_token=bytes_per_token,
        fingerprint=fingerprint(source.files) if source.files else getattr(module.config, "_commit_hash", None),
        generation_defaults=defaults if source.files else generation_defaults(source, choice=generation_config),
    )


def _read(source: ModelSource, *, model: str | Path, dtype: torch.dtype) -> tuple[Any, Any]:
    """Return tokenizer and module, without progress bars, warnings or questions on the terminal.

    Raises:
        ModelError: when a part is missing, damaged, or needs code from the repository.
    """
    options = {"trust_remote_code": False} | source.options
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(source.path, **options)
            module, report = AutoModelForCausalLM.from_pretrained(
                source.path, dtype=dtype, attn_implementation="eager", output_loading_info=True, **options
            )
    except Exception as error:
        raise ModelError(f"--model {model}: {source.doubt or _reason(error)}.") from error
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


def _reason(error: BaseException) -> str:
    """Return why loading failed, in a line."""
    if "trust_remote_code" in str(error):
        return (
            "its architecture is code of its own repository, which is never run; give a model that transformers knows"
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return f"cannot be loaded, {type(error).__name__}: {lines[0].removesuffix('.')}"


def _context_length(config: Any) -> int:
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx"):
        value = getattr(text, name, None)
        if isinstance(value, int) and value > 0:
            return value
    raise ModelError("the model's config.json names no context length; give a model with max_position_embeddings.")


def _eos_ids(module: Any, tokenizer: Any, *, model: str | Path) -> frozenset[int]:
    """Return the tokens that end a generation, by the generation config, else the config, else the tokenizer."""
    text = module.config.get_text_config()
    found = [getattr(module.generation_config, "eos_token_id", None), text.eos_token_id, tokenizer.eos_token_id]
    stated = next((value for value in found if value is not None), ())
    ids = frozenset([stated] if isinstance(stated, int) else stated)
    beyond = sorted(token for token in ids if not 0 <= token < text.vocab_size)
    if beyond:
        raise ModelError(
            f"--model {model}: its end-of-sequence token {beyond[0]} is not in the vocabulary of {text.vocab_size}; "
            "correct eos_token_id in generation_config.json or config.json."
        )
    return ids
