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


def test_other_exceptions_are_told_as_ever() -> None:
    found = ended(OTHER)
    assert found.returncode == 0
    assert "ValueError: something else" in found.stderr
