"""Stopping a run without losing what it has done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from batchspec.job.serving import Serving
from batchspec.job.watch import Watcher

__all__ = ["stop_on_signal"]


@contextmanager
def stop_on_signal(engine: Serving, watcher: Watcher) -> Iterator[None]:
    """Let the first SIGINT or SIGTERM end the run behind the current step; the second ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for number, handler in previous.items():
            signal.signal(number, handler)
        engine.stop()
        watcher.say("stopping behind the current step; once more to stop at once")

    for number in previous:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
