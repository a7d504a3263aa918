"""The installed command as a process of its own, which can be killed after some of its processor time."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ended", "arguments", "run", "run_and_signal", "seconds_of_processor", "start"]

_PAUSE = 0.002


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended.

    Attributes:
        status: what it exited with; minus the signal that killed it.
        stderr: what it said.
        processor: seconds of processor time that it took, as far as was seen.
    """

    status: int
    stderr: str
    processor: float = 0.0

    @property
    def last_line(self) -> str:
        """The last thing that it said."""
        return self.stderr.rstrip().rpartition("\n")[2]


def arguments(input_path: Path, run_dir: Path, flags: Sequence[str], output: Path | None = None) -> list[str]:
    """Return the arguments of ``batchspec`` for a job."""
    given = ["run", str(input_path), "--run-dir", str(run_dir), *flags]
    return given if output is None else [*given, "--output", str(output)]


def start(
    args: Sequence[str], *, env: Mapping[str, str] | None = None, user: int | None = None
) -> subprocess.Popen[str]:
    """Start the command that is installed beside this Python."""
    command = Path(sys.executable).with_name("batchspec")
    program = [str(command)] if command.exists() else [sys.executable, "-m", "batchspec"]
    return subprocess.Popen(
        [*program, *args],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=None if env is None else {**os.environ, **env},
        user=user,
    )


def run(args: Sequence[str], *, env: Mapping[str, str] | None = None, user: int | None = None) -> Ended:
    """Run the command to its end."""
    with start(args, env=env, user=user) as process:
        _, stderr = process.communicate()
    return Ended(status=process.returncode, stderr=stderr)


def run_and_signal(args: Sequence[str], *, behind: float, number: int = signal.SIGKILL, times: int = 1) -> Ended:
    """Run the command and send it a signal once it has taken so many seconds of processor time, if it gets that far.

    Processor time, since a busy machine changes everything else.
    """
    with start(args) as process:
        taken = 0.0
        while process.poll() is None and (taken := seconds_of_processor(process.pid) or taken) < behind:
            time.sleep(_PAUSE)
        for _ in range(times):
            if process.poll() is None:
                process.send_signal(number)
        _, stderr = process.communicate()
    return Ended(status=process.returncode, stderr=stderr, processor=taken)


def seconds_of_processor(pid: int) -> float:
    """Return how long a process has computed; 0 if it is no more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
