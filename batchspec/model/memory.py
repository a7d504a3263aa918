"""How much memory there is for keys and values, whether an allocator gives as much, and what it says if it does not."""

import gc
import os
from pathlib import Path

import torch

__all__ = ["free_memory", "give_back", "is_shortage", "is_to_be_had"]

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)

_ALLOCATORS = ("DefaultCPUAllocator", "can't allocate memory", "out of memory")


def is_shortage(error: BaseException) -> bool:
    """Whether an exception says that memory could not be had: of Python, of a device, or of torch on the CPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _ALLOCATORS)


def give_back() -> None:
    """Give back memory that nobody uses any more."""
    gc.collect()
    torch.cuda.empty_cache()  # does nothing where no device was used


def free_memory(device: torch.device) -> int:
    """Return the bytes that are free on the device now; on the CPU also within the limit of a container."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min(_available(), *(_left_in_container(limit, usage) for limit, usage in _CGROUPS))


def is_to_be_had(num_bytes: int, device: torch.device) -> bool:
    """Whether so many bytes are free, and the allocator gives them; they are given back at once and never touched."""
    if num_bytes > free_memory(device):
        return False
    try:
        torch.empty(num_bytes, dtype=torch.uint8, device=device)
    except (RuntimeError, MemoryError):
        return False
    return True


def _available() -> int:
    """Return what the kernel says could be used without swapping, caches included; else what is not used at all."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _left_in_container(limit: str, usage: str) -> int:
    """Return what a control group may still use; a great deal where it has no limit."""
    try:
        return max(0, int(Path(limit).read_text()) - int(Path(usage).read_text()))
    except (OSError, ValueError):
        return 2**62
