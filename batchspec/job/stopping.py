"""Stopping a run without losing what it has done, and telling how to go on."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from batchspec.errors import Terminated
from batchspec.job.outcome import ExitStatus, JobOutcome
from batchspec.job.serving import Serving
from batchspec.job.settings import JobSettings
from batchspec.job.watch import Watcher

__all__ = ["Stop", "how_to_go_on", "interrupted", "stop_on_signal"]

_NOTICE = "stopping behind the current step; once more to stop at once"


@dataclass
class Stop:
    """Which signal asked the run to end; None as long as none did."""

    signal: int | None = None


@contextmanager
def stop_on_signal(engine: Serving, watcher: Watcher) -> Iterator[Stop]:
    """Let the first SIGINT or SIGTERM end the run behind the current step; the second ends the process at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def heed(received: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for number, handler in previous.items():
            signal.signal(number, handler)
        stop.signal = received
        engine.stop()
        # Another thread tells it, since this one may have been interrupted while it wrote to the same stream.
        threading.Thread(target=watcher.say, args=(_NOTICE,), daemon=True).start()

    for number in previous:
        signal.signal(number, heed)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def interrupted(settings: JobSettings, *, by: int | KeyboardInterrupt | None, num_records: int | None) -> JobOutcome:
    """Return the outcome of a run that a signal ended.

    Args:
        settings: of the run.
        by: the signal, or what it raised; None counts as SIGINT.
        num_records: written so far; None when that is not known.
    """
    is_terminated = by == signal.SIGTERM or isinstance(by, Terminated)
    behind = "" if num_records is None else f" behind {num_records} records"
    return JobOutcome(
        status=ExitStatus.TERMINATED if is_terminated else ExitStatus.INTERRUPTED,
        report=None,
        sentences=(f"interrupted{behind}: {how_to_go_on(settings)}",),
    )


def how_to_go_on(settings: JobSettings) -> str:
    """Return what continues a run that did not come to its end."""
    if settings.input == "-":
        return "standard input cannot be continued, use --overwrite to start afresh"
    if settings.overwrite:
        return "run the same command without --overwrite to continue"
    return "run the same command again to continue"
