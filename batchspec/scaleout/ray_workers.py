"""Workers as actors of a Ray cluster."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from batchspec.errors import BatchspecError, UsageError
from batchspec.job.settings import JobSettings
from batchspec.scaleout.worker import Facts, Given, Reply, Worker
from batchspec.scaleout.workers import Event, Lost

__all__ = ["Ray", "RayWorkers", "import_ray"]

Ray = Any
"""The module, which has no types of its own that would help here."""


@dataclass(frozen=True, kw_only=True)
class _Refusal:
    """Why a worker cannot do what it was asked for."""

    sentence: str


class _Actor:
    """A worker in a process of its own; errors on purpose travel as sentences."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def open(self, settings: JobSettings) -> Facts | _Refusal:
        """Load the model."""
        from batchspec.job.run import engine_for, load_for

        try:
            self._worker = Worker(engine_for(settings, load_for(settings)))
        except BatchspecError as error:
            return _Refusal(sentence=str(error))
        return self._worker.facts()

    def exchange(self, given: Sequence[Given]) -> Reply | _Refusal:
        """Hand lines to the worker and return what it replies."""
        if self._worker is None:
            return _Refusal(sentence="a worker was handed lines before it had a model")
        try:
            return self._worker.exchange(given)
        except BatchspecError as error:
            return _Refusal(sentence=str(error))


class RayWorkers:
    """Starts an actor for every worker; none is restarted by Ray itself, so that nothing is done twice unseen.

    Args:
        ray: the module, connected to a cluster.
        settings: of the job; what paths it names must be there for all workers.
        num_cpus: cores that a worker reserves.
        num_gpus: devices that it reserves.
        on_close: called when all workers have ended.
    """

    def __init__(
        self, ray: Ray, settings: JobSettings, *, num_cpus: float, num_gpus: float, on_close: Callable[[], None]
    ):
        self._ray = ray
        self._settings = _with_whole_paths(settings)
        self._options = {"num_cpus": num_cpus, "num_gpus": num_gpus, "max_restarts": 0, "max_task_retries": 0}
        self._on_close = on_close
        self._numbers = count(1)
        self._actors: dict[int, Any] = {}
        self._calls: dict[int, deque[Any]] = {}

    def start(self) -> int:
        """As in ``Workers``, like all below."""
        number = next(self._numbers)
        actor = self._ray.remote(_Actor).options(**self._options).remote()
        self._actors[number] = actor
        self._calls[number] = deque([actor.open.remote(self._settings)])
        return number

    def send(self, number: int, given: Sequence[Given]) -> None:
        """See there."""
        self._calls[number].append(self._actors[number].exchange.remote(given))

    def wait(self, seconds: float) -> list[tuple[int, Event]]:
        """See there; only the oldest call of each worker is looked at, so that replies come in their order."""
        first = {calls[0]: number for number, calls in self._calls.items() if calls}
        if not first:
            return []
        ready, _ = self._ray.wait(list(first), num_returns=1, timeout=seconds)
        if ready:
            ready, _ = self._ray.wait(list(first), num_returns=len(first), timeout=0)
        return [(first[call], self._event(first[call], call)) for call in ready]

    def close(self) -> None:
        """See there."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        self._calls.clear()
        self._on_close()

    def _event(self, number: int, call: Any) -> Event:
        try:
            told = self._ray.get(call)
        except self._ray.exceptions.RayError as error:
            self._ray.kill(self._actors.pop(number))
            del self._calls[number]
            is_raised = isinstance(error, self._ray.exceptions.RayTaskError)
            return Lost(reason=_reason(str(error), line=-1 if is_raised else 0))
        self._calls[number].popleft()
        if isinstance(told, _Refusal):
            raise UsageError(f"worker {number}: {told.sentence}")
        event: Event = told
        return event


def import_ray() -> Ray:
    """Return the module; UsageError where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError("--ray needs Ray, which is not installed: pip install 'batchspec[ray]'") from error
    return ray


def _with_whole_paths(settings: JobSettings) -> JobSettings:
    """Return the settings with paths that hold wherever a worker's process stands."""
    speculative = settings.engine.speculative
    speculative = replace(speculative, model=_whole(speculative.model), path=_whole(speculative.path))
    return replace(
        settings,
        model=_whole(settings.model),
        generation_config=_whole(settings.generation_config) or settings.generation_config,
        engine=replace(settings.engine, speculative=speculative),
    )


def _whole(path: str | None) -> str | None:
    return str(Path(path).resolve()) if path is not None and Path(path).exists() else path


def _reason(text: str, *, line: int) -> str:
    """Return the line of what Ray says that tells most: the first, or of a traceback the last."""
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    return lines[line].rstrip(".:") if lines else "no reason was given"
