"""An array that grows along its first axis."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Growing"]

_FIRST_SIZE = 256


class Growing:
    """Zeros until something else is written.

    Args:
        shape: of one entry.
        dtype: of all.
    """

    def __init__(self, *shape: int, dtype: DTypeLike):
        self._array: NDArray[Any] = np.zeros((_FIRST_SIZE, *shape), dtype=dtype)
        self._length = 0

    def entry(self, index: int) -> Any:
        """Return an entry as a view; entries behind the end come into being."""
        if index >= len(self._array):
            larger = np.zeros((2 * max(index, len(self._array)), *self._array.shape[1:]), dtype=self._array.dtype)
            larger[: len(self._array)] = self._array
            self._array = larger
        self._length = max(self._length, index + 1)
        return self._array[index]

    @property
    def array(self) -> NDArray[Any]:
        """All entries up to the last that was asked for, as a view."""
        return self._array[: self._length]
