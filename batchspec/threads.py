"""Compiled functions that release Python's lock, run by several threads at once.

The threads wait actively for the tenth of a millisecond that usually passes between two calls of a forward pass: to
wake one that sleeps takes about as long as a small matrix product. Then they sleep, unlike those of OpenMP's pools, of
which two on the same cores would keep each other from working.
"""

import os
import threading
import weakref
from collections.abc import Callable
from itertools import pairwise

from batchspec.helper import Helper

__all__ = ["over_rows", "together"]


def _nothing() -> None:
    pass


def together(num_threads: int, work: Callable[[], None], *, on_error: Callable[[], None] = _nothing) -> None:
    """Call ``work`` in so many threads at once, the calling one among them, and wait for all.

    Args:
        num_threads: how many.
        work: what to do.
        on_error: called as soon as one of them fails, perhaps twice, for the others not to wait for it.
    """
    try:
        _share([_telling(work, on_error)] * num_threads, on_error)
    except BaseException:  # also where work was given but not begun
        on_error()
        raise


def over_rows(num_threads: int, num_rows: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` with slices that together are all rows, each in a thread of its own, and wait for all."""
    if num_threads == 1:
        work(slice(num_rows))
        return
    bounds = [num_rows * i // num_threads for i in range(num_threads + 1)]
    _share([_on(work, slice(first, last)) for first, last in pairwise(bounds) if last > first])


def _on(work: Callable[[slice], None], part: slice) -> Callable[[], None]:
    return lambda: work(part)


def _telling(work: Callable[[], None], on_error: Callable[[], None]) -> Callable[[], None]:
    """Return the work with what is to be done where it fails."""

    def run() -> None:
        try:
            work()
        except BaseException:
            on_error()
            raise

    return work if on_error is _nothing else run


def _share(parts: list[Callable[[], None]], on_error: Callable[[], None] = _nothing) -> None:
    """Do the first part here and the others in helpers; raise what the first one of them to fail raises."""
    if len(parts) < 2:
        for part in parts:
            part()
        return
    team, _OWN.team = _OWN.team or _Team(), None  # who was not waited for, as after Ctrl-C, gets no more work
    helpers = team.helpers(len(parts) - 1)
    for helper, part in zip(helpers, parts[1:], strict=True):
        helper.give(part)
    try:
        parts[0]()
    except BaseException:  # also between here and the first line of the work
        on_error()
        raise
    finally:
        errors = [error for error in map(Helper.wait, helpers) if error is not None]
    _OWN.team = team
    if errors:
        raise errors[0]


class _Team:
    """The helpers of one thread, so that several may call for help at once."""

    def __init__(self) -> None:
        self._helpers: list[Helper] = []
        self._process = os.getpid()
        weakref.finalize(self, _dismiss, self._helpers)

    def helpers(self, count: int) -> list[Helper]:
        """Return so many helpers; a process that was forked off has none of its parent's threads."""
        if self._process != os.getpid():
            self._helpers.clear()
            self._process = os.getpid()
        self._helpers += [Helper() for _ in range(count - len(self._helpers))]
        return self._helpers[:count]


class _Own(threading.local):
    def __init__(self) -> None:
        self.team: _Team | None = None


def _dismiss(helpers: list[Helper]) -> None:
    for helper in helpers:
        helper.dismiss()


_OWN = _Own()
