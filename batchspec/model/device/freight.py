"""Arrays that travel to the device together: one copy a step instead of one for each."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Arrays", "join", "split"]

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name: int64, int32 or bool, of any shape."""

_WORD = 8  # bytes; every array begins at a multiple, so that it can be read in place
_DTYPES = {np.dtype(np.int64): torch.int64, np.dtype(np.int32): torch.int32, np.dtype(np.bool_): torch.bool}


def join(arrays: Arrays, *, device: torch.device) -> torch.Tensor:
    """Return uint8 (bytes,) in the host's memory: the arrays, one behind another.

    Args:
        arrays: what to put together.
        device: where it will go; for CUDA the memory is pinned, so that nobody has to wait for the copy.
    """
    size = sum(_whole_words(array.nbytes) for array in arrays.values())
    joined = torch.empty(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
    target = joined.numpy()
    for _, array, first in _places(arrays):
        target[first : first + array.nbytes] = array.reshape(-1).view(np.uint8)
    return joined


def split(joined: torch.Tensor, *, like: Arrays) -> dict[str, torch.Tensor]:
    """Return what ``join`` put together, as views of its bytes.

    Args:
        joined: uint8 (bytes,), on any device.
        like: arrays of the same names, dtypes and shapes.
    """
    return {
        name: joined[first : first + array.nbytes].view(_DTYPES[array.dtype]).view(array.shape)
        for name, array, first in _places(like)
    }


def _places(arrays: Arrays) -> Iterator[tuple[str, NDArray[Any], int]]:
    """Yield every array with its name and its first byte."""
    first = 0
    for name, array in arrays.items():
        yield name, array, first
        first += _whole_words(array.nbytes)


def _whole_words(num_bytes: int) -> int:
    return -(-num_bytes // _WORD) * _WORD
