"""Steps that get smaller when memory is short, and larger again when it is not."""

import gc

import torch

from batchspec.scheduler import Scheduler

__all__ = ["Scarcity"]

_ALLOCATORS = ("DefaultCPUAllocator", "can't allocate memory", "out of memory")
_STEPS_TO_RELAX = 64


class Scarcity:
    """Halves the tokens of a step behind each failure of the allocator; doubles them again behind steps that went well.

    Args:
        scheduler: whose ``max_num_batched_tokens`` is changed, between 1 and what it is now.
    """

    def __init__(self, scheduler: Scheduler):
        self._scheduler = scheduler
        self._most = scheduler.max_num_batched_tokens
        self._num_good = 0

    @staticmethod
    def is_shortage(error: BaseException) -> bool:
        """Whether an exception says that memory could not be had: of Python, of a device, or of torch on the CPU."""
        if isinstance(error, MemoryError | torch.OutOfMemoryError):
            return True
        return isinstance(error, RuntimeError) and any(words in str(error) for words in _ALLOCATORS)

    def retrench(self) -> bool:
        """Let the following steps be half as large; return False if they cannot be smaller."""
        self._num_good = 0
        if self._scheduler.max_num_batched_tokens == 1:
            return False
        gc.collect()
        torch.cuda.empty_cache()  # does nothing where no device was used
        self._scheduler.max_num_batched_tokens //= 2
        return True

    def relax(self) -> None:
        """Take note of a step that went well; behind enough of them, steps may be larger again."""
        if self._scheduler.max_num_batched_tokens == self._most:
            return
        self._num_good += 1
        if self._num_good == _STEPS_TO_RELAX:
            self._num_good = 0
            self._scheduler.max_num_batched_tokens = min(self._most, 2 * self._scheduler.max_num_batched_tokens)
