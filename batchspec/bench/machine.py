"""What the machine is, and how fast it copies memory."""

import os
import platform
import time
from pathlib import Path
from typing import Any

import torch

from batchspec.bench.clock import synchronise
from batchspec.bench.spread import alternate, spread

__all__ = ["describe_machine", "measure_bandwidth"]

_COPIED_BYTES = 256 * 2**20  # far more than any cache holds


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Return names, counts and versions that the numbers depend on; memory in bytes."""
    on_cuda = device.type == "cuda"
    return {
        "processor": torch.cuda.get_device_name(device) if on_cuda else _processor(),
        "capability": "CUDA" if on_cuda else torch.backends.cpu.get_cpu_capability(),
        "num_cores": len(os.sched_getaffinity(0)),
        "num_threads": torch.get_num_threads(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY"),
        "load_average": os.getloadavg()[0],
    }


def measure_bandwidth(device: torch.device, *, rounds: int, num_bytes: int = _COPIED_BYTES) -> dict[str, Any]:
    """Return the bytes per second that a copy reads and writes together; the best round is what the machine can do."""
    source = torch.zeros(num_bytes // 4, dtype=torch.float32, device=device)
    target = torch.ones_like(source)

    def copy() -> float:
        synchronise(device)
        started = time.perf_counter()
        target.copy_(source)
        synchronise(device)
        return 2 * num_bytes / (time.perf_counter() - started)

    copy()
    return {"bytes_per_second": vars(spread(alternate({"copy": copy}, rounds=rounds)["copy"]))}


def _processor() -> str:
    """Return the processor's name as Linux tells it, else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
