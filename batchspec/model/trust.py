"""What of a model's files may run code here; nothing, unless the user says so."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Trust", "pickled_weights"]

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


@dataclass(frozen=True, kw_only=True)
class Trust:
    """How far a model's repository is trusted.

    Attributes:
        remote_code: Python files of the repository may be run.
        pickle: weights may be pickle files, which can name any function to be called when they are read.
    """

    remote_code: bool = False
    pickle: bool = False

    def notes(self, model: str) -> list[str]:
        """Return what the user should be reminded of."""
        notes = []
        if self.remote_code:
            notes.append(f"--trust-remote-code: Python code from the repository of {model} runs with your rights")
        if self.pickle:
            notes.append(f"--allow-pickle: weights of {model} may be pickle files, which can run code when read")
        return notes


def pickled_weights(files: Iterable[Path]) -> str | None:
    """Return the name of a pickle file among the files of a directory; None if there are safetensors, or no weights."""
    found = sorted(files)
    if any(path.suffix == ".safetensors" for path in found):
        return None
    return next((path.name for path in found if path.suffix in _PICKLES), None)
