"""The command line, called in the test's own process."""

import sys

import pytest

from batchspec.cli import main

__all__ = ["call"]


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Run the command line; return status, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["batchspec", *args])
    with pytest.raises(SystemExit) as exit_:
        main()
    captured = capsys.readouterr()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code, captured.out, captured.err
