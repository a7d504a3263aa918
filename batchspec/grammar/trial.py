"""Grammars that could take minutes or all memory, tried in a process that can be ended."""

import json
import re
import select
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

__all__ = ["Trial", "is_doubtful"]

_CHILD = Path(__file__).with_name("trial_child.py")
_LONGEST = 20_000  # characters of a grammar that needs no trial
_LONGEST_LITERAL = 200_000
_DEEPEST = 50
_MOST_REPEATED = 2_000
_REPEATED = re.compile(r"\{(\d{1,9}),?(\d{0,9})\}|~\s*(\d{1,9})(?:\.\.(\d{1,9}))?")
_REMAINDERS = re.compile(r'\\?"multipleOf\\?"\s*:\s*(?!\d\d?\s*[,}])')
_MEMORY_BYTES = 2 * 2**30
_WALL_SECONDS = 60.0  # of a machine so busy that processor time does not pass


def is_doubtful(source: str, *, is_literal: bool) -> bool:
    """Whether a grammar, in llguidance's JSON form, is so large, deep or often repeated that it should be tried.

    Args:
        source: the grammar.
        is_literal: it is a choice among plain texts, in which nothing is repeated.
    """
    if is_literal:
        return len(source) > _LONGEST_LITERAL
    if len(source) > _LONGEST or _REMAINDERS.search(source):
        return True
    times = depth = deepest = 1
    for match in _REPEATED.finditer(source):
        times = min(times * max(1, *(int(number) for number in match.groups() if number)), 10**9)
    for character in source:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return times > _MOST_REPEATED or deepest > _DEEPEST


class Trial:
    """Tries grammars in a process of its own, which is started with the first.

    Args:
        compile_seconds: processor time that a grammar may take altogether.
        token_seconds: of it, what the tokens that may come first may take; every further token can take as much.
        memory_bytes: address space that the process may have.
    """

    def __init__(self, *, compile_seconds: float = 5.0, token_seconds: float = 0.25, memory_bytes: int = _MEMORY_BYTES):
        self._compile_seconds = compile_seconds
        self._token_seconds = token_seconds
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[str] | None = None
        self._end: Callable[[], object] = lambda: None

    def check(self, source: str) -> None:
        """Pass if the grammar can be compiled, or refused, in time.

        Raises:
            ValueError: it takes too long or too much memory; the message says so.
        """
        answer = self._answer(json.dumps(source))
        if answer is None:
            raise ValueError(self._reason())
        if float(answer) > self._token_seconds:
            raise ValueError(
                f"it takes {float(answer):.2g} s to find the tokens that may come first, more than the "
                f"{self._token_seconds:g} s allowed; make it smaller, for repetitions within each other multiply"
            )

    def _answer(self, line: str) -> str | None:
        """Return what the process says to a grammar; None if it ended over it."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return None
        ready, _, _ = select.select([process.stdout], [], [], _WALL_SECONDS)
        return process.stdout.readline() or None if ready else None

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is None:
            limits = [str(self._compile_seconds), str(self._memory_bytes)]
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(_CHILD), *limits],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # an interrupt of the terminal is the run's affair
            )
            self._end = weakref.finalize(self, _end, self._process)
        return self._process

    def _reason(self) -> str:
        """Return why the process ended, and let the next grammar have another."""
        process = self._process
        assert process is not None
        try:
            status = process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            status = -signal.SIGXCPU
        self.close()
        if status == -signal.SIGXCPU:
            return (
                f"it takes more than {self._compile_seconds:g} s to compile; make it smaller, for repetitions within "
                "each other multiply"
            )
        return (
            f"it takes more than {self._memory_bytes // 2**20} MiB to compile, or cannot be compiled; make it smaller"
        )

    def close(self) -> None:
        """End the process, if there is one."""
        self._end()
        self._process = None


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()
