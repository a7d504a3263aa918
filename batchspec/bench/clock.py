"""Reading the clock around work that may go on behind one's back, and around work that is too short for it."""

import time
from collections.abc import Callable

import torch

__all__ = ["repeated", "seconds_of", "synchronise"]

_SHORTEST = 0.03  # seconds to measure for, at least
_MOST_REPEATS = 20


def synchronise(device: torch.device) -> None:
    """Wait for what was handed to the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(work: Callable[[], object], *, device: torch.device) -> float:
    """Return the seconds from the work's beginning to its end on the device."""
    synchronise(device)
    started = time.perf_counter()
    work()
    synchronise(device)
    return time.perf_counter() - started


def repeated(measure: Callable[[], float]) -> float:
    """Return the mean of as many measurements, in seconds, as make the clock's own error small."""
    found = [measure()]
    while sum(found) < _SHORTEST and len(found) < _MOST_REPEATS:
        found.append(measure())
    return sum(found) / len(found)
