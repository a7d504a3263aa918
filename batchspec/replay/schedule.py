"""A job's steps and their times without its model: the scheduler's choice of rows, over steps that are known.

The batch is filled in the order of the requests; prompts are computed in chunks beside the decode steps, both within
the token budget, as ``batchspec.scheduler`` does it. Not simulated: pages that run short, prefix caching, and requests
that wait for others' outputs.
"""

import numpy as np

from batchspec.replay.costs import CostTable
from batchspec.replay.growing import Growing
from batchspec.replay.logs import Machine
from batchspec.replay.recorded import Recorded
from batchspec.replay.schedule_kernels import SLOT_SIZE, run_steps
from batchspec.replay.trace import Trace

__all__ = ["Schedule"]

_FIRST_SLOTS = 16
_FIRST_STEPS = 256


class Schedule:
    """Runs sequences as they are added, and keeps only those in the batch.

    Args:
        costs: of a step.
        machine: size of the batch and of a step.
        seconds: float64, by request; added to is its share of each step's time, by its rows. They add up to the time of
            the whole job.
    """

    def __init__(self, costs: CostTable, machine: Machine, *, seconds: Growing):
        self._costs = (costs.rows, costs.contexts, costs.seconds)
        self._budget = machine.max_num_batched_tokens
        self._most = machine.max_num_seqs
        self._slots = np.zeros((_FIRST_SLOTS, SLOT_SIZE), dtype=np.int64)
        self._steps = np.zeros((_FIRST_SLOTS, 2, _FIRST_STEPS), dtype=np.int32)
        self._num_running = 0
        self._seconds = seconds

    def add(self, one: Recorded, trace: Trace) -> None:
        """Add the next sequence with its steps; it runs as soon as there is room in the batch."""
        rows, tokens = trace.rows, trace.tokens
        self._run(until=self._most - 1)
        self._seconds.entry(one.row)
        self._make_room(len(rows))
        slot = self._num_running
        self._slots[slot] = (one.row, max(1, len(one.prompt)), 0, len(rows), 0)
        self._steps[slot, :, : len(rows)] = rows, tokens
        self._num_running += 1

    def finish(self) -> None:
        """Run what is left."""
        self._run(until=0)

    def _make_room(self, num_steps: int) -> None:
        """Double the slots, or the steps that each can hold, until a further sequence fits."""
        num_slots, _, room = self._steps.shape
        more_slots = num_slots if self._num_running == num_slots else 0
        more_room = max(room, num_steps) if num_steps > room else 0
        if more_slots or more_room:
            self._slots = np.pad(self._slots, ((0, more_slots), (0, 0)))
            self._steps = np.pad(self._steps, ((0, more_slots), (0, 0), (0, more_room)))

    def _run(self, *, until: int) -> None:
        seconds = self._seconds.array
        self._num_running = run_steps(
            self._slots, self._steps, self._num_running, until, self._budget, *self._costs, seconds
        )
