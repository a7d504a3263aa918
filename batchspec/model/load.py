"""Loading a model directory, a hub id or a GGUF file into a model that runs on pages."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from batchspec.errors import ModelError
from batchspec.model.gate import admit
from batchspec.model.rope import freeze_frequencies
from batchspec.model.tokenizer import Tokenizer

__all__ = ["EMBEDDED_TARGET", "LoadedModel", "load_model", "resolve_device", "resolve_dtype"]

EMBEDDED_TARGET = Path(__file__).parent.parent / "models" / "target"
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
        fingerprint: hash over the files' names, sizes and edges; None for a hub id.
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


def load_model(model: str | Path = EMBEDDED_TARGET, *, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """Load a model, switch it to paged attention and check that it still computes the same.

    Args:
        model: a directory, a hub id, or a ``.gguf`` file.
        device: auto, cpu or cuda.
        dtype: auto, float32, bfloat16 or float16.

    Raises:
        ModelError: when it cannot be read, or when its family cannot run on pages.
    """
    where = resolve_device(device)
    kind = resolve_dtype(dtype, device=where)
    source, options, name = _locate(model)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        module = AutoModelForCausalLM.from_pretrained(source, dtype=kind, attn_implementation="eager", **options)
    except ImportError as error:
        raise ModelError(f"--model {model}: {_first_line(error)} (pip install 'batchspec[gguf]' for GGUF files)") from None
    except Exception as error:
        raise ModelError(f"--model {model} cannot be loaded: {_first_line(error)}") from error
    module = module.to(where).eval().requires_grad_(False)
    context_length = _context_length(module.config)
    freeze_frequencies(module, max_length=context_length)
    bytes_per_token = admit(module, device=where)
    return LoadedModel(
        module=module,
        tokenizer=Tokenizer(tokenizer),
        name=name,
        device=where,
        dtype=kind,
        context_length=context_length,
        eos_ids=_eos_ids(module, tokenizer),
        bytes_per_token=bytes_per_token,
        fingerprint=_fingerprint(Path(source)) if Path(source).is_dir() else None,
    )


def _locate(model: str | Path) -> tuple[str, dict[str, Any], str]:
    """Return what to give to ``from_pretrained``, its options, and the model's name."""
    path = Path(model)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelError(f"--model {model}: there is no such file; give a directory, a hub id or a .gguf file.")
        return str(path.parent), {"gguf_file": path.name}, path.stem
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"--model {model}: the directory has no config.json; give a Hugging Face model directory.")
        return str(path), {"local_files_only": True}, path.resolve().name
    looks_local = path.is_absolute() or str(model).startswith((".", "~")) or str(model).count("/") != 1
    if path.exists() or looks_local:
        raise ModelError(f"--model {model}: there is no such directory; give a directory, a hub id or a .gguf file.")
    return str(model), {}, str(model).rsplit("/", 1)[-1]


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _context_length(config: Any) -> int:
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx"):
        value = getattr(text, name, None)
        if isinstance(value, int) and value > 0:
            return value
    raise ModelError("the model's config.json names no context length; give a model with max_position_embeddings.")


def _eos_ids(module: Any, tokenizer: Any) -> frozenset[int]:
    found = [getattr(module.generation_config, "eos_token_id", None), module.config.get_text_config().eos_token_id]
    for value in (*found, tokenizer.eos_token_id):
        if value is not None:
            return frozenset([value] if isinstance(value, int) else value)
    return frozenset()


def _fingerprint(directory: Path) -> str:
    """Return a sha256 over name, size, first and last MiB of every file that shapes the output."""
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        if path.suffix in {".json", ".safetensors", ".bin", ".jinja", ".model"}:
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode())
            with path.open("rb") as file:
                digest.update(file.read(1 << 20))
                file.seek(max(0, size - (1 << 20)))
                digest.update(file.read())
    return digest.hexdigest()
