"""Ending Python code that takes too long, in whichever thread it runs."""

import ctypes
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TooSlow", "Watchdog"]


class TooSlow(Exception):
    """Raised inside of code that a watchdog watches, where it is when its time is over."""


class Watchdog:
    """Ends what takes too long; its thread is started with the first thing to watch, and looks now and then.

    Args:
        seconds: that what is watched may take; it can become a quarter more.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._lock = threading.Lock()
        self._due: dict[int, float] = {}
        self._is_started = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the block; it is ended between two instructions of Python, not within a call into C.

        Raises:
            TooSlow: it took too long.
        """
        own = threading.get_ident()
        with self._lock:
            self._due[own] = time.monotonic() + self.seconds
            if not self._is_started:
                threading.Thread(target=_look, args=(weakref.ref(self), self.seconds / 4), daemon=True).start()
                self._is_started = True
        try:
            yield
        finally:
            with self._lock:
                self._due.pop(own, None)

    def look(self) -> None:
        """Raise TooSlow in every thread whose time is over, again and again until it is out of its block."""
        with self._lock:
            for thread, due in self._due.items():
                if time.monotonic() > due:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TooSlow))


def _look(watchdog: "weakref.ref[Watchdog]", seconds: float) -> None:
    while (own := watchdog()) is not None:
        own.look()
        del own
        time.sleep(seconds)
