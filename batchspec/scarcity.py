"""Steps that get smaller when memory is short, and larger again when it is not."""

from batchspec.scheduler import Scheduler

__all__ = ["Scarcity"]

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

    def retrench(self) -> bool:
        """Let the following steps be half as large; return False if they cannot be smaller."""
        self._num_good = 0
        if self._scheduler.max_num_batched_tokens == 1:
            return False
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
