"""Where the time of an engine's steps goes: its stations are wrapped from outside, so that the step stays as it is."""

import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any

import torch

from batchspec.bench.clock import synchronise
from batchspec.engine import EngineCore

__all__ = ["FORWARD", "Laps", "watch"]

FORWARD = "forward"
# Station, its method, what the time before the call is spent on, and what the call itself is.
_BOUNDARIES = (
    ("drafter", "propose", "records", "draft"),
    ("scheduler", "plan", "draft", "schedule"),
    ("grammars", "masks", "schedule", "verify"),
    ("runner", "forward", "verify", FORWARD),
    ("scheduler", "commit", "verify", "commit"),
    ("drafter", "observe", "account", "draft"),
    ("scheduler", "reap", "account", "commit"),
)


class Laps:
    """Gives every moment since it was made to one name or another, so that nothing is left over."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._clock = clock
        self._last = clock()

    def lap(self, name: str) -> None:
        """Give the time since the last lap to ``name``."""
        now = self._clock()
        self.seconds[name] += now - self._last
        self._last = now


def watch(core: EngineCore, laps: Laps, *, device: torch.device) -> None:
    """Let an engine's stations report to ``laps`` from now on.

    What the engine does itself between two stations counts as: "records" (taking requests in and handing records
    out), "verify" (choosing and comparing tokens), "account" (counters, progress and streams).

    Args:
        core: the engine.
        laps: told where the time went.
        device: of the model, which is waited for behind a forward pass.
    """
    for station, method, before, during in _BOUNDARIES:
        owner = attrgetter(station)(core)
        setattr(owner, method, _timed(getattr(owner, method), laps, before=before, during=during, device=device))


def _timed(
    call: Callable[..., Any], laps: Laps, *, before: str, during: str, device: torch.device
) -> Callable[..., Any]:
    @wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        laps.lap(before)
        result = call(*args, **kwargs)
        if during == FORWARD:
            synchronise(device)
        laps.lap(during)
        return result

    return timed
