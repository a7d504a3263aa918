"""Threads that do one thing after another together, and wait for each other between, without leaving compiled code."""

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from batchspec.compiled import inner
from batchspec.helper import pause, read
from batchspec.instruction import instruction

__all__ = ["counter", "give_up", "meet", "words_for"]

_LINE = 16  # words, so that no two of those that count share a cache line or are fetched together
_PATIENCE = 2000  # pauses, about half a tenth of a millisecond; then the core is lent to others
_CAN_YIELD = sys.platform != "win32"


def words_for(num_parts: int) -> NDArray[np.int64]:
    """Return what threads need to do so many parts together once, int64: see ``counter`` and ``meet``."""
    return np.zeros((2 * num_parts + 1) * _LINE, dtype=np.int64)


def give_up(words: NDArray[np.int64]) -> None:
    """Have nobody wait any longer for who will not come."""
    words[0] = 1


@inner
def counter(words: Any, part: int) -> Any:
    """Return the counter of a part, int64 (1,), from which threads claim their tasks."""
    at = (2 * part + 1) * _LINE
    return words[at : at + 1]


@inner
def meet(words: Any, part: int, num_threads: int) -> bool:
    """Wait until all threads have done a part; return whether all did, or one gave up."""
    at, count = (2 * part + 2) * _LINE, 0
    if _arrive(words, at) + 1 < num_threads:
        while read(words, at) < num_threads:
            if read(words, 0):
                return False
            count += 1
            if count > _PATIENCE:
                _let_others(words)
            else:
                pause(words)
    return True


@instruction(gives=types.intp)
def _arrive(builder: Any, words: Any, index: Any) -> Any:
    """Count one on; what was written before is seen by who reads it."""
    return builder.atomic_rmw("add", builder.gep(words, [index]), ir.Constant(ir.IntType(64), 1), "acq_rel")


@instruction(gives=types.void)
def _let_others(builder: Any, words: Any) -> None:
    """Lend the core to another thread that has something to do; it may be the one that is waited for."""
    del words
    if _CAN_YIELD:
        builder.call(_function(builder.module, "sched_yield", ir.FunctionType(ir.IntType(32), [])), [])


def _function(module: Any, name: str, kind: Any) -> Any:
    return module.globals.get(name) or ir.Function(module, kind, name)
