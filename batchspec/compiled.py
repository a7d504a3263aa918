"""Functions compiled by numba, with the machine code kept on disk where that is possible."""

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["compiled"]


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Return numba's decorator; the machine code is kept on disk, unless no directory for it can be written.

    Never with ``fastmath``: the order of a sum would then be the compiler's choice, which differs between code just
    compiled and the same code loaded from disk, and with it the last bits.
    """

    def decorate(function: Any) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            return njit(**options)(function)

    return decorate
