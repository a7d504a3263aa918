"""Work shared by threads: all of it is done, errors come back, and nobody waits for ever."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable

import pytest

from batchspec import helper
from batchspec.threads import over_rows, together


def names_of(num_threads: int) -> set[str]:
    """Return the names of the threads that are called."""
    names: list[str] = []
    together(num_threads, lambda: names.append(threading.current_thread().name))
    assert len(names) == num_threads
    return set(names)


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_all_are_called(num_threads: int) -> None:
    for pause in (0.0, 0.0, 0.002, 0.0):  # some while helpers wait actively, some while they sleep
        time.sleep(pause)
        assert names_of(num_threads) == {"MainThread", "batchspec-helper"} if num_threads > 1 else {"MainThread"}


def test_slow_helpers_are_waited_for() -> None:
    done = []

    def work(part: slice) -> None:
        if part.start:
            time.sleep(0.05)
        done.append(part)

    over_rows(3, 30, work)
    assert sorted(part.stop for part in done) == [10, 20, 30]


def test_thousands_of_calls_without_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers fall asleep at once, so that every order of giving work and falling asleep comes about."""
    for patience in (0, 1, 20):
        monkeypatch.setattr(helper, "_PATIENCE", patience)
        for _ in range(3000):
            calls: list[int] = []
            together(3, lambda calls=calls: calls.append(1))  # type: ignore[misc]
            assert len(calls) == 3


@pytest.mark.parametrize("failing", ["MainThread", "batchspec-helper"])
def test_errors_come_back_when_all_is_done(failing: str) -> None:
    finished = []

    def work() -> None:
        if threading.current_thread().name == failing:
            raise ValueError("broken")
        time.sleep(0.01)
        finished.append(1)

    with pytest.raises(ValueError, match="broken"):
        together(2, work)
    assert finished == [1]
    assert names_of(2)


def test_an_interrupted_wait_costs_the_helpers_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: helper.Helper) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(helper.Helper, "wait", interrupted)
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):
                together(2, lambda: time.sleep(0.001))
    for _ in range(20):
        assert names_of(2)


def test_an_interruption_behind_what_was_given_costs_the_helpers_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give = helper.Helper.give

    def interrupted(self: helper.Helper, work: Callable[[], None] | None) -> None:
        give(self, work)
        if work is not None:  # else it is told to end
            raise KeyboardInterrupt

    def calls() -> None:
        for _ in range(20):
            with monkeypatch.context() as patch:
                patch.setattr(helper.Helper, "give", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    together(2, lambda: time.sleep(0.001))
            done.append(len(names_of(2)))

    done: list[int] = []
    caller = threading.Thread(target=calls, daemon=True)  # where the next call hung, it would never end
    caller.start()
    caller.join(timeout=60)
    assert len(done) == 20


def test_several_threads_call_for_help_at_once() -> None:
    counts: list[int] = []

    def caller() -> None:
        for _ in range(300):
            calls: list[int] = []
            together(2, lambda: calls.append(1))  # noqa: B023
            counts.append(len(calls))

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(timeout=60)
    assert counts == [2] * 1200


def test_helpers_go_with_the_thread_they_help() -> None:
    def living() -> int:
        return sum(thread.name == "batchspec-helper" for thread in threading.enumerate())

    before = living()
    caller = threading.Thread(target=lambda: together(3, lambda: None))
    caller.start()
    caller.join()
    limit = time.monotonic() + 30
    while living() > before and time.monotonic() < limit:
        time.sleep(0.01)
    assert living() <= before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_off_has_helpers_of_its_own() -> None:
    assert names_of(2)
    process = multiprocessing.get_context("fork").Process(target=names_of, args=(2,))
    process.start()
    process.join(timeout=60)
    assert process.exitcode == 0
