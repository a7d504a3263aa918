"""The measurement of choosing tokens does what it says."""

import sys

import pytest

from batchspec.sampling import speed


def test_every_kind_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["speed", "--rows", "3", "--vocabulary", "500", "--rounds", "1"])
    speed.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(speed._KINDS)
    assert all(line.endswith(" ms for 3 rows") for line in lines)
