"""Tensors of a model directory, read one by one so that no more than one of them is in memory twice."""

import json
from pathlib import Path

import torch
from safetensors import safe_open

__all__ = ["Checkpoint"]

_ROWS_AT_ONCE = 1 << 24  # elements
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

    def read(self, names: list[str]) -> torch.Tensor:
        """Return tensors as float32, one below another.

        What is mapped is dropped piece by piece, or the file would be in memory beside its copy.
        """
        shapes = [self.mapped(name).shape for name in names]
        out = torch.empty((sum(shape[0] for shape in shapes), *shapes[0][1:]))
        start = 0
        for name, shape in zip(names, shapes, strict=True):
            target = out[start : start + shape[0]]
            step = max(1, _ROWS_AT_ONCE // max(1, shape[1:].numel()))
            for first in range(0, shape[0], step):
                target[first : first + step] = self.mapped(name)[first : first + step]
            start += shape[0]
        return out
