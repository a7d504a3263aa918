"""A thread that does one piece of work after another."""

import platform
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from batchspec.compiled import compiled
from batchspec.instruction import instruction

__all__ = ["Helper", "pause", "read"]

_GIVEN, _DONE, _NUM_WORDS = 0, 16, 32  # counters, on cache lines of their own
_PATIENCE = 5000  # pauses, one or two tenths of a millisecond
_SETTLING = 100  # pauses until whoever gave the work has let go of Python's lock: to wait for it is to sleep
_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64")


@instruction(gives=types.intp)
def read(builder: Any, words: Any, index: Any) -> Any:
    """Return a number that another thread may be writing, and with it all that was written before it."""
    return builder.load_atomic(builder.gep(words, [index]), "acquire", 8)


@instruction(gives=types.void)
def pause(builder: Any, words: Any) -> None:
    """Leave the core to others for a moment."""
    del words
    if _HAS_PAUSE:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])


@compiled(nogil=True)
def _await(words: Any, index: int, number: int, patience: int, settling: int) -> bool:
    """Wait actively until a word is at least a number; return whether it is by the end of the patience."""
    for _ in range(patience):
        if read(words, index) >= number:
            for _ in range(settling):
                pause(words)
            return True
        pause(words)
    return False


class Helper:
    """A thread that waits actively for a moment, then asleep, for its next piece of work.

    One thread gives it work, piece by piece, and waits for each.
    """

    def __init__(self) -> None:
        self._words = np.zeros(_NUM_WORDS, dtype=np.int64)
        self._work: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._wake, self._ready = threading.Event(), threading.Event()
        self._is_asleep = self._is_awaited = False
        self._count = 0
        threading.Thread(target=self._serve, name="batchspec-helper", daemon=True).start()

    def give(self, work: Callable[[], None] | None) -> None:
        """Have something done; the piece before it must have been waited for."""
        self._work = work
        self._count += 1
        self._words[_GIVEN] = self._count
        if self._is_asleep:
            self._wake.set()

    def wait(self) -> BaseException | None:
        """Wait for the work that was given; return what it raised."""
        if not _await(self._words, _DONE, self._count, _PATIENCE, 0):
            self._ready.clear()
            self._is_awaited = True
            while self._words[_DONE] < self._count:
                self._ready.wait()
                self._ready.clear()
            self._is_awaited = False
        error, self._error = self._error, None
        return error

    def dismiss(self) -> None:
        """Let the thread end."""
        self.give(None)

    def _serve(self) -> None:
        number = 1
        while True:
            while self._words[_GIVEN] < number and not _await(self._words, _GIVEN, number, _PATIENCE, _SETTLING):
                self._sleep(number)
            work, self._work = self._work, None
            if work is None:
                return
            try:
                work()
            except BaseException as error:  # it belongs to whoever gave the work
                self._error = error
            del work
            self._words[_DONE] = number
            if self._is_awaited:
                self._ready.set()
            number += 1

    def _sleep(self, number: int) -> None:
        """Sleep unless work was given meanwhile: it sets the word first, then looks who is asleep."""
        self._wake.clear()
        self._is_asleep = True
        if self._words[_GIVEN] < number:
            self._wake.wait()
        self._is_asleep = False
