"""The engines that a benchmark can be run beside, by name; checked before anything heavy is imported."""

import shutil
from pathlib import Path

from batchspec.errors import UsageError

__all__ = ["WORKERS", "parse_peer_dtypes", "parse_peer_models", "parse_peers"]

_PEERS = Path(__file__).parent / "peers"
WORKERS = {
    "openvino": _PEERS / "openvino_worker.py",
    "vllm": _PEERS / "vllm_worker.py",
    "vllm-compiled": _PEERS / "vllm_worker.py",
}
_DTYPES = ("float32", "bfloat16", "float16")
_CHOICE = ", ".join(["transformers", *(f"{name}=PYTHON" for name in WORKERS)])


def parse_peers(given: list[str]) -> dict[str, str | None]:
    """Return the interpreter of each peer, None for the one in our own process.

    Raises:
        UsageError: a peer is not known, has no interpreter that can be run, or has one and needs none.
    """
    peers: dict[str, str | None] = {}
    for text in given:
        name, _, python = text.partition("=")
        if name not in ("transformers", *WORKERS):
            raise UsageError(f"--peer {text!r} is not known; choose from {_CHOICE}.")
        if name == "transformers" and python:
            raise UsageError("--peer transformers runs in this process: give no interpreter.")
        if name != "transformers" and shutil.which(python) is None:
            problem = f"{python!r} cannot be run" if python else "it runs in an environment of its own"
            raise UsageError(f"--peer {name}: {problem}; write {name}=PYTHON, the interpreter that has {name}.")
        peers[name] = python or None
    return peers


def parse_peer_models(given: list[str]) -> dict[str, str]:
    """Return the model of each peer that reads another form of it; UsageError unless each is ``NAME=DIR``."""
    models = {}
    for text in given:
        name, _, directory = text.partition("=")
        if not Path(directory).is_dir() or not directory:
            raise UsageError(f"--peer-model {text!r}: there is no such directory; write it like openvino=DIR.")
        models[name] = directory
    return models


def parse_peer_dtypes(given: list[str]) -> dict[str, str]:
    """Return the dtype of each peer that computes in another than the model's; UsageError for an unknown one."""
    dtypes = {}
    for text in given:
        name, _, dtype = text.partition("=")
        if dtype not in _DTYPES:
            raise UsageError(f"--peer-dtype {text!r} must be NAME=DTYPE with one of {', '.join(_DTYPES)}.")
        dtypes[name] = dtype
    return dtypes
