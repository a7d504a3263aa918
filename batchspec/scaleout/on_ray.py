"""A job on a Ray cluster: the same run directory, served by workers elsewhere."""

import logging
import os
import re
import socket
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass

from batchspec.errors import UsageError
from batchspec.job.opening import OpenedJob
from batchspec.job.outcome import JobOutcome
from batchspec.job.run import serve_with
from batchspec.job.watch import Watcher
from batchspec.scaleout.crew import Crew
from batchspec.scaleout.fleet import Fleet
from batchspec.scaleout.ray_workers import Ray, RayWorkers, import_ray

__all__ = ["RaySettings", "serve_on_ray"]

_SECONDS_TO_ANSWER = 10.0


@dataclass(frozen=True, kw_only=True)
class RaySettings:
    """How many workers, and what each reserves.

    Attributes:
        num_workers: None for as many as the cluster has devices for, or one on each machine where there are none.
        gpus_per_worker: devices of a worker, or a part of one; None for one where the cluster has devices.
    """

    num_workers: int | None = None
    gpus_per_worker: float | None = None

    def check(self) -> None:
        """Raise UsageError for numbers that cannot work on any cluster."""
        if self.num_workers is not None and not 1 <= self.num_workers <= 10_000:
            raise UsageError(f"--num-workers must be from 1 to 10000, not {self.num_workers}.")
        gpus = self.gpus_per_worker
        if gpus is not None and not (0 <= gpus <= 1 or (1 < gpus <= 64 and gpus.is_integer())):
            raise UsageError(f"--gpus-per-worker must be a part of one or a whole number up to 64, not {gpus}.")


def serve_on_ray(opened: OpenedJob, settings: RaySettings, *, watcher: Watcher) -> JobOutcome:
    """Serve what is left of a job on the cluster of ``RAY_ADDRESS``, or on one that is started here and ends with it.

    Raises:
        UsageError: there is no Ray or no such cluster, it has no room for a worker, the workers cannot serve the job,
            or as ``run_job``.
    """
    settings.check()
    # Ray tells of lost processes on standard output, which is the report's. What matters of it, the watcher is told.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        return _serve(import_ray(), opened, settings, watcher=watcher)


def _serve(ray: Ray, opened: OpenedJob, settings: RaySettings, *, watcher: Watcher) -> JobOutcome:
    close = _connect(ray)
    try:
        workers, num_workers = _workers(ray, opened, settings, on_close=close)
    except BaseException:
        close()
        raise
    max_num_seqs = opened.settings.engine.max_num_seqs
    crew = Crew(workers, num_workers=num_workers, max_num_seqs=max_num_seqs, say=watcher.say)
    with Fleet(crew) as fleet:
        return serve_with(fleet, opened, watcher=watcher)


def _connect(ray: Ray) -> Callable[[], None]:
    """Connect unless that was done before; return what undoes it."""
    if ray.is_initialized():
        return lambda: None
    address = os.environ.get("RAY_ADDRESS")
    local = {} if address else {"include_dashboard": False}
    try:
        if address:
            _knock(address)
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **local)
    except Exception as error:  # of this very class, when a process of Ray's does not start
        where = f"the Ray cluster at RAY_ADDRESS={address} cannot be reached" if address else "Ray cannot be started"
        raise UsageError(f"{where} ({' '.join(str(error).split())[:200]}): check it with ray status") from error
    shutdown: Callable[[], None] = ray.shutdown
    return shutdown


def _knock(address: str) -> None:
    """Raise OSError if nobody listens at ``host:port``, for which Ray itself would wait for minutes."""
    match = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:([0-9]+)", address)
    if match is not None:
        socket.create_connection((match[1], int(match[2])), timeout=_SECONDS_TO_ANSWER).close()


def _workers(
    ray: Ray, opened: OpenedJob, settings: RaySettings, *, on_close: Callable[[], None]
) -> tuple[RayWorkers, int]:
    """Return where workers are started, and how many there should be."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    num_gpus = sum(node.get("GPU", 0) for node in nodes)
    gpus = settings.gpus_per_worker
    if gpus is None:
        gpus = 1.0 if num_gpus and opened.settings.device != "cpu" else 0.0
    if gpus > max((node.get("GPU", 0) for node in nodes), default=0):
        raise UsageError(f"no machine of the cluster has {gpus:g} GPUs for a worker: choose another --gpus-per-worker.")
    num_workers = settings.num_workers or (int(num_gpus // gpus) if gpus else len(nodes))
    cpus = 1.0 if gpus else _cpus(nodes, num_workers)
    return RayWorkers(ray, opened.settings, num_cpus=cpus, num_gpus=gpus, on_close=on_close), num_workers


def _cpus(nodes: list[dict[str, float]], num_workers: int) -> float:
    """Return the cores of a worker where all share the machines evenly: at least one."""
    with_cores = [node["CPU"] for node in nodes if node.get("CPU")]
    if not with_cores:
        raise UsageError("no machine of the cluster has a CPU for a worker: start one with ray start --num-cpus 1.")
    on_each = -(-num_workers // len(with_cores))
    return max(1.0, min(with_cores) // on_each)
