"""A job in a forked process to which something happens before its n-th file operation: no place of a write is left out.

The parent has loaded the model; a run then takes a fraction of a second. Operations are what the rooms that write files
ask of the operating system: opening, writing, syncing, renaming, cutting, removing.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from batchspec import launch
from batchspec.job import checkpoints
from batchspec.model.load import LoadedModel
from tests.reliability.command import Ended

__all__ = ["Fork", "die"]

_OPERATIONS = {"open", "write", "flush", "close", "fsync", "replace", "rename", "unlink", "remove", "truncate"}
_OPERATIONS |= {"ftruncate", "mkdir", "rmdir", "flock", "write_table"}
_ROOMS = (
    "/reliability/operations.py",
    "/batchspec/files/",
    "/batchspec/job/",
    "/pathlib.py",
    "/pyarrow/parquet/core.py",
)
_FAILED = 70  # exit status of a fork that ended with an exception


def die() -> None:
    """End the process at once, as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)


class Fork:
    """Runs the command in forks of this process.

    Args:
        model: used in the place of the one that the command would load.
        syncs: whether files are synced to the disk, which a killed process does not need and which takes most of the
            time.
    """

    def __init__(self, model: LoadedModel, *, syncs: bool = False):
        self._model = model
        self._syncs = syncs

    def run(
        self,
        args: Sequence[str],
        *,
        before: int | None = None,
        do: Callable[[], None] = die,
        prepare: Callable[[], None] = lambda: None,
    ) -> Ended:
        """Run the command with a checkpoint behind every step.

        Args:
            args: of the command.
            before: number of the file operation, 1-based, before which something is done; None for none.
            do: what.
            prepare: called in the fork before the command.
        """
        with tempfile.TemporaryFile("w+") as stderr:
            status = self._forked(args, stderr.fileno(), _doing(before, do), prepare)
            stderr.seek(0)
            return Ended(status=status, stderr=stderr.read())

    def num_operations(self, args: Sequence[str]) -> int:
        """Run the command to its end; return how many file operations it makes."""
        count = [0]
        with tempfile.TemporaryDirectory() as directory:
            noted = Path(directory) / "count"

            def profile(frame: FrameType, event: str, argument: Any) -> None:
                count[0] += _is_operation(frame, event, argument)

            def note() -> None:
                sys.setprofile(None)
                noted.write_text(str(count[0]))

            self._forked(args, 2, profile, lambda: None, note)
            return int(noted.read_text())

    def _forked(
        self,
        args: Sequence[str],
        stderr: int,
        profile: Callable[[FrameType, str, Any], None],
        prepare: Callable[[], None],
        at_end: Callable[[], None] = lambda: None,
    ) -> int:
        pid = os.fork()
        if not pid:
            status = _FAILED
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(stderr, 2)
                sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
                prepare()
                status = self._command(args, profile)
                at_end()
            finally:
                with suppress(OSError, ValueError):
                    sys.stderr.flush()
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _command(self, args: Sequence[str], profile: Callable[[FrameType, str, Any], None]) -> int:
        """Be the command, and return its exit status."""
        from batchspec.cli import main

        setattr(launch, "load_model", lambda *_, **__: self._model)  # noqa: B010
        if not self._syncs:
            setattr(os, "fsync", _unsynced)  # noqa: B010
        checkpoints.SECONDS_BETWEEN = 0.0
        sys.argv = ["batchspec", *args]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.setprofile(profile)
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
        finally:
            sys.setprofile(None)
        return 0


def _unsynced(descriptor: int) -> None:
    """Make a file operation of no effect in the place of one that waits for the disk."""
    os.close(os.dup(descriptor))


def _doing(before: int | None, do: Callable[[], None]) -> Callable[[FrameType, str, Any], None]:
    left = [0 if before is None else before]

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if left[0] and _is_operation(frame, event, argument):
            left[0] -= 1
            if not left[0]:
                do()

    return profile


def _is_operation(frame: FrameType, event: str, argument: Any) -> bool:
    if event != "c_call" or getattr(argument, "__name__", "") not in _OPERATIONS:
        return False
    return any(room in frame.f_code.co_filename for room in _ROOMS)
