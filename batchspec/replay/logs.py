"""The logs to replay: files, run directories with what their manifests tell, standard input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batchspec.errors import UsageError
from batchspec.files.manifest import read_manifest
from batchspec.files.source import InputSource, open_source

__all__ = ["Log", "Machine", "open_logs"]

_RESPONSES = "responses.jsonl"
_DEFAULT = {"max_num_seqs": 64, "max_num_batched_tokens": 2048}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the engine of a run is like, as far as acceptance and step times hang on it.

    Attributes:
        max_num_seqs: the most sequences in the running batch.
        max_num_batched_tokens: the most tokens in one forward pass.
        max_model_len: the most tokens of a sequence and its draft; None for no limit that is known.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int | None


@dataclass(frozen=True, kw_only=True)
class Log:
    """Responses of one job.

    Attributes:
        path: as it was named.
        source: of its rows.
        machine: on which the job is replayed.
    """

    path: str
    source: InputSource
    machine: Machine


def open_logs(paths: Sequence[str], given: Mapping[str, int | None]) -> list[Log]:
    """Return the logs; what is not given of their machines is taken from a run directory's manifest, else the default.

    Args:
        paths: files, run directories (their responses.jsonl), or ``-``.
        given: names of ``Machine`` with their values; None for what is not given.

    Raises:
        UsageError: a path is missing, or not what its name says, or named twice.
    """
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"{path} is named twice: name every log once")
    return [_open(path, {name: value for name, value in given.items() if value is not None}) for path in paths]


def _open(path: str, given: Mapping[str, int]) -> Log:
    found: dict[str, Any] = {"max_model_len": None}
    if path not in ("", "-") and Path(path).is_dir():
        responses = Path(path) / _RESPONSES
        if not responses.is_file():
            raise UsageError(f"{path} is a directory without {_RESPONSES}: give a run directory or a file")
        found |= _of_run(Path(path))
        source = open_source(responses)
    else:
        source = open_source(path)
    return Log(path=path, source=source, machine=Machine(**{**_DEFAULT, **found, **given}))


def _of_run(directory: Path) -> dict[str, int]:
    """Return what the manifest of a run tells of its machine."""
    manifest = read_manifest(directory / "manifest.json") or {}
    parameters, engine = manifest.get("parameters", {}), manifest.get("engine", {})
    told = {name: parameters.get(name) for name in _DEFAULT} | {"max_model_len": engine.get("max_model_len")}
    return {name: value for name, value in told.items() if type(value) is int}
