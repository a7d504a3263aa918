"""What a model's ``generation_config.json`` says about sampling, and nothing that a library fills in."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import try_to_load_from_cache

from batchspec.errors import ModelError
from batchspec.model.locate import ModelSource

__all__ = ["GENERATION_CONFIG", "generation_defaults", "read_generation_config"]

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


def generation_defaults(source: ModelSource, *, choice: str) -> dict[str, Any]:
    """Return the sampling values that hold where neither a request nor a flag gives one.

    Args:
        source: where the model is; a hub id whose files are in the local cache by now.
        choice: ``auto`` for the file that comes with the model, ``openai`` for no file, else a directory with one.

    Raises:
        ModelError: as ``read_generation_config``.
    """
    if choice == "openai":
        return {}
    if choice != "auto":
        return read_generation_config(Path(choice) / GENERATION_CONFIG)
    if Path(source.path).is_dir():
        path = Path(source.path) / GENERATION_CONFIG
    else:
        found = try_to_load_from_cache(source.path, GENERATION_CONFIG)
        path = Path(found) if isinstance(found, str) else Path()
    return read_generation_config(path) if path.is_file() else {}


def read_generation_config(path: Path) -> dict[str, Any]:
    """Return the sampling values that a file states; ``do_sample`` is not heeded, and null counts as not stated.

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
    return stated


def _wrong(path: Path, what: str) -> ModelError:
    return ModelError(f"{path} {what}; correct it or use --generation-config openai.")
