"""Tensors of a model directory."""

import json
from pathlib import Path

import torch
from safetensors import safe_open

__all__ = ["Checkpoint"]

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"


class Checkpoint:
    """The safetensors files of a directory.

    Args:
        directory: with ``model.safetensors``, or its index and shards.

    Raises:
        FileNotFoundError: there are no such files.
    """

    def __init__(self, directory: Path):
        index = directory / _INDEX
        if index.is_file():
            listed = json.loads(index.read_bytes())["weight_map"]
            self._files = {name: directory / file for name, file in listed.items()}
        else:
            with safe_open(directory / _SINGLE, framework="pt") as file:
                self._files = dict.fromkeys(file.keys(), directory / _SINGLE)

    def names(self) -> set[str]:
        """Return the names of all tensors."""
        return set(self._files)

    def mapped(self, name: str) -> torch.Tensor:
        """Return a tensor as it is stored; of its pages only those that are used come into memory."""
        with safe_open(self._files[name], framework="pt") as file:
            tensor: torch.Tensor = file.get_tensor(name)
        return tensor

    def dtypes(self) -> set[torch.dtype]:
        """Return in which types the tensors are stored."""
        return {self.mapped(name).dtype for name in self._files}
