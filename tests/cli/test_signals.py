"""A signal that meets a finaliser, where Python drops what it raises, ends the command all the same."""

import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys, time
from batchspec.cli.signals import end_by_signals, status_of

class Meets:
    def __del__(self):
        signal.raise_signal({number})

end_by_signals()
try:
    Meets()
    time.sleep(20)
except KeyboardInterrupt as error:
    sys.exit(status_of(error))
"""

EARLY = """
import signal
{before}
import batchspec.__main__
signal.raise_signal(signal.SIGINT)
from batchspec.cli.signals import end_by_signals
end_by_signals()
signal.raise_signal(signal.SIGINT)
print("here")
"""

OTHER = """
from batchspec.cli.signals import end_by_signals

class Fails:
    def __del__(self):
        raise ValueError("something else")

end_by_signals()
Fails()
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_is_not_lost(number: int) -> None:
    found = ended(PROGRAM.format(number=number))
    assert (found.returncode, found.stderr) == (128 + number, "")


def test_a_signal_before_the_command_listens_ends_it_without_a_traceback() -> None:
    found = ended(EARLY.format(before=""))
    assert (found.returncode, found.stderr) == (-2, "")


def test_the_command_listens_once_it_is_there() -> None:
    found = ended(EARLY.format(before="").replace("signal.raise_signal(signal.SIGINT)", "", 1))
    assert found.returncode == -2  # Python ends itself with the signal behind the traceback
    assert "KeyboardInterrupt" in found.stderr


def test_where_a_shell_ignores_the_signal_it_stays_ignored() -> None:
    found = ended(EARLY.format(before="signal.signal(signal.SIGINT, signal.SIG_IGN)"))
    assert (found.returncode, found.stdout, found.stderr) == (0, "here\n", "")


def test_other_exceptions_are_told_as_ever() -> None:
    found = ended(OTHER)
    assert found.returncode == 0
    assert "ValueError: something else" in found.stderr
