"""A job's steps and their times without its model: the scheduler's choice of rows, over steps that are known.

The batch is filled in the order of the requests; prompts are computed in chunks beside the decode steps, both within
the token budget, as ``batchspec.scheduler`` does it. Not simulated: pages that run short, prefix caching, and requests
that wait for others' outputs.
"""

from typing import Any

import numpy as np

from batchspec.compiled import compiled, inner
from batchspec.replay.costs import CostTable
from batchspec.replay.growing import Growing
from batchspec.replay.logs import Machine
from batchspec.replay.recorded import Recorded
from batchspec.replay.trace import Trace

__all__ = ["Schedule"]

_FIRST_SLOTS = 16
_FIRST_STEPS = 256
_ROW, _PROMPT_LEFT, _NEXT, _NUM_STEPS, _CONTEXT = range(5)


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
        self._slots = np.zeros((_FIRST_SLOTS, 5), dtype=np.int64)
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
        self._num_running = _run(
            self._slots, self._steps, self._num_running, until, self._budget, *self._costs, seconds
        )


@compiled()
def _run(
    slots: Any, steps: Any, num: int, until: int, budget: int, rows: Any, contexts: Any, table: Any, seconds: Any
) -> int:
    """Take steps until at most so many sequences run; return how many do."""
    computed = np.zeros(len(slots), dtype=np.int64)
    while num > until:
        total = _fill(slots, steps, num, budget, computed)
        context = 0
        for slot in range(num):
            context += slots[slot, _CONTEXT]
        per_row = _interpolated(float(total), context / num, rows, contexts, table) / total
        for slot in range(num):
            seconds[slots[slot, _ROW]] += per_row * computed[slot]
            _advance(slots[slot], steps[slot], computed[slot])
        num = _reap(slots, steps, num)
    return num


@inner
def _fill(slots: Any, steps: Any, num: int, budget: int, computed: Any) -> int:
    """Fill in how many rows each sequence computes in the next step, and return their sum.

    A decode step that does not fit what is left of the budget waits for the next one.
    """
    left = budget
    for slot in range(num):
        wanted = slots[slot, _PROMPT_LEFT]
        if wanted:
            computed[slot] = min(wanted, left)
        else:
            wanted = min(budget, steps[slot, 0, slots[slot, _NEXT]])
            computed[slot] = wanted if wanted <= left else 0
        left -= computed[slot]
    return budget - left


@inner
def _advance(slot: Any, steps: Any, computed: int) -> None:
    if not computed:
        return
    if slot[_PROMPT_LEFT]:
        slot[_PROMPT_LEFT] -= computed
        slot[_CONTEXT] += computed
    else:
        slot[_CONTEXT] += steps[1, slot[_NEXT]]
        slot[_NEXT] += 1


@inner
def _reap(slots: Any, steps: Any, num: int) -> int:
    """Close the gaps of sequences that have ended; return how many are left."""
    kept = 0
    for slot in range(num):
        is_over = slots[slot, _PROMPT_LEFT] == 0 and slots[slot, _NEXT] == slots[slot, _NUM_STEPS]
        if is_over:
            continue
        if kept < slot:
            slots[kept] = slots[slot]
            length = slots[slot, _NUM_STEPS]
            steps[kept, :, :length] = steps[slot, :, :length]
        kept += 1
    return kept


@inner
def _interpolated(size: float, context: float, rows: Any, contexts: Any, table: Any) -> Any:
    """Return the seconds of a step; between contexts on a line, beyond them as at the nearest."""
    place = 0
    while place + 2 < len(contexts) and context > contexts[place + 1]:
        place += 1
    low = _of_size(size, rows, table[place])
    if len(contexts) == 1:
        return low
    high = _of_size(size, rows, table[place + 1])
    share = (context - contexts[place]) / (contexts[place + 1] - contexts[place])
    return low + (high - low) * min(1.0, max(0.0, share))


@inner
def _of_size(size: float, rows: Any, seconds: Any) -> Any:
    place = 0
    while place + 2 < len(rows) and size > rows[place + 1]:
        place += 1
    slope = (seconds[place + 1] - seconds[place]) / (rows[place + 1] - rows[place])
    if size > rows[place + 1]:
        slope = max(0.0, slope)
        return seconds[place + 1] + slope * (size - rows[place + 1])
    return seconds[place] + slope * (max(size, rows[0]) - rows[place])
