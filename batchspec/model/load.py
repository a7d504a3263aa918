"""Loading a model directory, a hub id or a GGUF file into a model that runs on pages."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from batchspec.errors import ModelError
from batchspec.model.generation import GenerationDefaults, generation_defaults
from batchspec.model.grammar_tokenizer import grammar_tokenizer
from batchspec.model.locate import EMBEDDED_TARGET, ModelSource, fingerprint, locate
from batchspec.model.native.families import Unknown
from batchspec.model.native.loading import load_native
from batchspec.model.network import Network, Parts
from batchspec.model.precision import DtypeChoice, choose_dtype
from batchspec.model.sizes import check_sizes
from batchspec.model.tokenizer import Tokenizer
from batchspec.model.trust import Trust

if TYPE_CHECKING:
    from llguidance import LLTokenizer

__all__ = ["MODEL_IMPLS", "LoadedModel", "load_model", "resolve_device", "resolve_dtype"]

_NONE = Trust()
_MOST_TOKENS = 1_000_000  # of a prompt that is truncated, as far as its tokens fit in memory well
MODEL_IMPLS = ("auto", "batchspec", "transformers")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model that passed the gate, and what the engine needs to know about it.

    Attributes:
        network: runs the layers.
        tokenizer: its tokenizer.
        name: the directory's or hub's name, used in labels and bodies.
        device: where it runs.
        dtype: of the weights.
        dtype_reason: why, as a sentence; empty where there was nothing to choose.
        context_length: the longest sequence the configuration allows.
        eos_ids: token ids that end a generation.
        kv_dtype: of keys and values.
        bytes_per_token: of keys and values over all layers.
        fingerprint: hash over the files' names, sizes and edges; for a hub id the commit.
        generation_defaults: what its generation_config.json states.
        trust: as it was loaded with.
    """

    network: Network
    tokenizer: Tokenizer
    name: str
    device: torch.device
    dtype: torch.dtype
    dtype_reason: str
    context_length: int
    eos_ids: frozenset[int]
    kv_dtype: torch.dtype
    bytes_per_token: int
    fingerprint: str | None
    generation_defaults: GenerationDefaults
    trust: Trust = _NONE

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


def resolve_dtype(dtype: str, *, device: torch.device, source: ModelSource) -> DtypeChoice:
    """Return the torch dtype; ``auto`` is bfloat16 on CUDA, and on the CPU what ``choose_dtype`` says."""
    if dtype == "auto":
        return choose_dtype(source) if device.type == "cpu" else DtypeChoice(dtype=torch.bfloat16)
    if dtype not in _DTYPES:
        raise ModelError(f"--dtype {dtype!r} is not known; choose auto, {', '.join(_DTYPES)}.")
    return DtypeChoice(dtype=_DTYPES[dtype])


def load_model(
    model: str | Path = EMBEDDED_TARGET,
    *,
    device: str = "auto",
    dtype: str = "auto",
    generation_config: str = "auto",
    impl: str = "auto",
    trust: Trust = _NONE,
) -> LoadedModel:
    """Load a model, switch it to paged attention and check that it still computes the same.

    Args:
        model: a directory, a hub id, or a ``.gguf`` file.
        device: auto, cpu or cuda.
        dtype: auto, float32, bfloat16 or float16.
        generation_config: where sampling defaults come from: ``auto`` for the model's own generation_config.json,
            ``openai`` for no file, or a directory with such a file.
        impl: whose layers run it: ``batchspec``, ``transformers``, or ``auto`` for the former where they know it.
        trust: what of its files may run code.

    Raises:
        ModelError: when it cannot be read, when its family cannot run on pages, or when a sampling default is wrong.
    """
    where = resolve_device(device)
    source = locate(model)
    check_sizes(source, model=model)
    choice = resolve_dtype(dtype, device=where, source=source)
    defaults = generation_defaults(source, choice=generation_config)
    parts = _load(source, model=model, dtype=choice.dtype, device=where, impl=impl, trust=trust)
    return LoadedModel(
        network=parts.network,
        tokenizer=Tokenizer(
            parts.tokenizer,
            num_embeddings=parts.vocab_size,
            most_tokens=max(2 * parts.context_length, _MOST_TOKENS),
        ),
        name=source.name,
        device=where,
        dtype=choice.dtype,
        dtype_reason=choice.reason,
        context_length=parts.context_length,
        eos_ids=_eos_ids(parts, model=model),
        kv_dtype=parts.kv_dtype,
        bytes_per_token=parts.bytes_per_token,
        fingerprint=fingerprint(source.files) if source.files else parts.commit,
        trust=trust,
        generation_defaults=defaults if source.files else generation_defaults(source, choice=generation_config),
    )


def _load(
    source: ModelSource, *, model: str | Path, dtype: torch.dtype, device: torch.device, impl: str, trust: Trust
) -> Parts:
    """Return the model by our own layers where they know it, else by transformers' modules.

    Raises:
        ModelError: it cannot be loaded, or the layers that were asked for do not know it.
    """
    if impl not in MODEL_IMPLS:
        raise ModelError(f"--model-impl {impl!r} is not known; choose {', '.join(MODEL_IMPLS)}.")
    if impl != "transformers":
        try:
            return load_native(source, dtype=dtype, device=device)
        except Unknown as reason:
            if impl == "batchspec":
                raise ModelError(
                    f"--model-impl batchspec: {model} cannot be run by it because of {reason}; use auto."
                ) from None
    from batchspec.model.hosted import load_hosted

    return load_hosted(source, model=model, dtype=dtype, device=device, trust=trust)


def _eos_ids(parts: Parts, *, model: str | Path) -> frozenset[int]:
    """Return the tokens that end a generation, by the first of the places that says."""
    stated = next((value for value in parts.eos_ids if value is not None), ())
    ids = frozenset([stated] if isinstance(stated, int) else stated)
    beyond = sorted(token for token in ids if not 0 <= token < parts.vocab_size)
    if beyond:
        raise ModelError(
            f"--model {model}: its end-of-sequence token {beyond[0]} is not in the vocabulary of {parts.vocab_size}; "
            "correct eos_token_id in generation_config.json or config.json."
        )
    return ids
