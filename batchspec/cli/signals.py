"""SIGINT and SIGTERM before a run takes care of them itself: they end the command, whatever it is doing."""

import os
import signal
import sys
import threading
from types import FrameType

from batchspec.errors import Terminated

__all__ = ["end_by_signals", "status_of"]

_SECONDS_TO_LEAVE = 0.02  # what the signal met and was lost in


def end_by_signals() -> None:
    """Let SIGTERM end the command like SIGINT, which raises from here on, and neither of them be lost.

    What a signal raises within a finaliser or a callback of a library, as may happen while modules are imported, Python
    reports and drops. Then the signal is sent again.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    sys.unraisablehook = _again


def status_of(error: KeyboardInterrupt) -> int:
    """Return 128 and the signal's number, as a shell does."""
    return 128 + _number_of(error)


def _terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise Terminated


def _number_of(error: KeyboardInterrupt) -> int:
    return signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT


def _again(dropped: "sys.UnraisableHookArgs") -> None:
    """Send the signal again whose exception was dropped; tell of any other exception as Python does."""
    if not isinstance(dropped.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    again = threading.Timer(_SECONDS_TO_LEAVE, os.kill, (os.getpid(), _number_of(dropped.exc_value)))
    again.daemon = True
    again.start()
