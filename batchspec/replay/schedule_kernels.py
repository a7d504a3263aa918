"""The compiled loops of the simulated schedule.

A slot is a sequence in the batch: the row of its request, prompt tokens left to compute, its next decode step, their
number, and the tokens before the next one. The oldest stands first.
"""

from typing import Any

import numpy as np

from batchspec.compiled import compiled, inner

__all__ = ["SLOT_SIZE", "run_steps"]

SLOT_SIZE = 5
_ROW, _PROMPT_LEFT, _NEXT, _NUM_STEPS, _CONTEXT = range(SLOT_SIZE)


@compiled()
def run_steps(
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
