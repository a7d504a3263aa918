"""What a model's ``generation_config.json`` says about sampling, and nothing that a library fills in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batchspec.errors import ModelError
from batchspec.model.locate import ModelSource

__all__ = ["GENERATION_CONFIG", "GenerationDefaults", "generation_defaults", "read_generation_config"]

GENERATION_CONFIG = "generation_config.json"
_LARGEST = 2**31 - 1

# Key: whether it is an integer, the range, and whether the range's lower end is left out.
_RANGES: Mapping[str, tuple[bool, float, float, bool]] = {
    "temperature": (False, 0, 2, False),
    "top_p": (False, 0, 1, True),
    "top_k": (True, -1, _LARGEST, False),
    "min_p": (False, 0, 1, False),
    "repetition_penalty": (False, 0, _LARGEST, True),
    "max_new_tokens": (True, 1, _LARGEST, False),
}

# Keys that would change the output if they were heeded, each with the values that ask for nothing.
_UNUSED: Mapping[str, tuple[Any, ...]] = {
    "bad_words_ids": ([],),
    "begin_suppress_tokens": ([],),
    "diversity_penalty": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "exponential_decay_length_penalty": (),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "guidance_scale": (1,),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "no_repeat_ngram_size": (0,),
    "num_beams": (1,),
    "penalty_alpha": (0,),
    "sequence_bias": ([], {}),
    "stop_strings": ([],),
    "suppress_tokens": ([],),
    "top_h": (1,),
    "typical_p": (1,),
    "watermarking_config": (),
}


@dataclass(frozen=True, kw_only=True)
class GenerationDefaults:
    """What a generation_config.json comes to.

    Attributes:
        values: by the file's names, the sampling values that hold where neither a request nor a flag gives one.
        unused: names of what the file states besides and what is not heeded, though it would change the output.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


def generation_defaults(source: ModelSource, *, choice: str) -> GenerationDefaults:
    """Return the sampling defaults that come with a model.

    Args:
        source: where the model is; a hub id whose files are in the local cache by now.
        choice: ``auto`` for the file that comes with the model, ``openai`` for no file, else a directory with one.

    Raises:
        ModelError: as ``read_generation_config``.
    """
    if choice == "openai":
        return GenerationDefaults()
    if choice != "auto":
        return read_generation_config(Path(choice) / GENERATION_CONFIG)
    if Path(source.path).is_dir():
        path = Path(source.path) / GENERATION_CONFIG
    else:
        from huggingface_hub import try_to_load_from_cache  # only for hub ids: it takes a moment to import

        found = try_to_load_from_cache(source.path, GENERATION_CONFIG)
        path = Path(found) if isinstance(found, str) else Path()
    return read_generation_config(path) if path.is_file() else GenerationDefaults()


def read_generation_config(path: Path) -> GenerationDefaults:
    """Return what a file states; ``do_sample`` is not heeded, as in vLLM, and null counts as not stated.

    Raises:
        ModelError: the file cannot be read, or a value has a wrong type or is out of range.
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _wrong(path, f"cannot be read ({error})") from error
    if not isinstance(document, dict):
        raise _wrong(path, "is not a JSON object")
    stated = {name: document[name] for name in _RANGES if document.get(name) is not None}
    for name, value in stated.items():
        is_integer, low, high, is_low_excluded = _RANGES[name]
        is_right = isinstance(value, int if is_integer else int | float) and not isinstance(value, bool)
        if not is_right or not low <= value <= high or (is_low_excluded and value == low):
            kind = "an integer" if is_integer else "a number"
            bounds = f"{'above' if is_low_excluded else 'from'} {low} to {high}"
            raise _wrong(path, f"says {name} {value!r}, not {kind} {bounds}")
    unused = (name for name, off in _UNUSED.items() if document.get(name) not in (None, *off))
    return GenerationDefaults(values=stated, unused=tuple(unused))


def _wrong(path: Path, what: str) -> ModelError:
    return ModelError(f"{path} {what}; correct it or use --generation-config openai.")
