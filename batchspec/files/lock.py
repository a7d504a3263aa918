"""One run at a time in a directory."""

import fcntl
import os
from pathlib import Path

from batchspec.errors import UsageError

__all__ = ["LOCK_NAME", "check_unlocked", "take_lock"]

LOCK_NAME = ".lock"


def take_lock(directory: Path, *, flag: str = "--run-dir") -> int:
    """Lock an existing directory for this process; return the descriptor to close in the end.

    The lock ends with the process, however it ends. File systems without locks give a descriptor that locks nothing.

    Args:
        directory: to lock.
        flag: with which another directory can be chosen.

    Raises:
        UsageError: another run holds the lock, or the lock file cannot be made.
    """
    try:
        descriptor = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UsageError(f"{directory} cannot be written ({error.strerror}): choose another {flag}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise UsageError(
            f"another run is writing to {directory}: wait until it ends, or choose another {flag}"
        ) from error
    except OSError:
        pass
    return descriptor


def check_unlocked(directory: Path) -> None:
    """Raise UsageError if another run holds the lock now; nothing is written."""
    if (directory / LOCK_NAME).exists():
        os.close(take_lock(directory))
