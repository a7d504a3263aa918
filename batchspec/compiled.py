"""Functions compiled by numba, with the machine code kept on disk where that is possible."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

__all__ = ["compiled", "inner", "is_stored"]


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


def inner(function: Any) -> Any:
    """Compile a function that only compiled functions call: it gets no entry from Python, which takes time to make.

    Its machine code is kept within that of its callers.
    """
    return njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def is_stored(function: Any) -> bool:
    """Return whether machine code of a compiled function is on disk; it may still be of an older version."""
    directory = function.stats.cache_path
    return directory is not None and any(Path(directory).glob(f"*.{function.__name__}-*.nbi"))
