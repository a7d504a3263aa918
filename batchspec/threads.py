"""Compiled functions that release Python's lock, run by several threads at once.

The threads sleep between calls. Those of numba's and OpenMP's pools wait actively, and two such pools on the same cores
would keep each other from working.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

__all__ = ["over_rows", "together"]


def together(num_threads: int, work: Callable[[], None]) -> None:
    """Call ``work`` in so many threads at once, the calling one among them, and wait for all."""
    helpers = [_pool(num_threads - 1).submit(work) for _ in range(num_threads - 1)] if num_threads > 1 else []
    work()
    for helper in helpers:
        helper.result()


def over_rows(num_threads: int, num_rows: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` with slices that together are all rows, each in a thread of its own, and wait for all."""
    if num_threads == 1:
        work(slice(num_rows))
        return
    bounds = [num_rows * i // num_threads for i in range(num_threads + 1)]
    slices = [slice(first, last) for first, last in pairwise(bounds) if last > first]
    helpers = [_pool(num_threads - 1).submit(work, part) for part in slices[1:]]
    for part in slices[:1]:
        work(part)
    for helper in helpers:
        helper.result()


@cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="batchspec-attention")
