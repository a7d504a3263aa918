"""Names, ids and categories full of control characters never reach the terminal raw, by whichever command."""

import json
import re
import sys
from pathlib import Path

import pytest

from batchspec.cli import main

from .making import ESC

_STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
ROWS = [
    {"id": f"a{ESC}", "category": f"{ESC}=cmd", "prompt": "hi", "max_tokens": 2},
    {"id": f"a{ESC}", "prompt": "twice"},
    {"prompt": 7, f"x{ESC}": 1, "category": "\u202egnp"},
    {"id": "b", "prompt": "x", "stop": [f"{ESC}"], "temperature": f"{ESC}"},
    f"no json {ESC}",
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory and a file in it, both with names that steer a terminal."""
    directory = tmp_path / "\x1b[2Jdir"
    directory.mkdir()
    text = "".join((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in ROWS)
    (directory / "\x9b31m.jsonl").write_text(text)
    return directory


def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["batchspec", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    found = _STEERING.search(out + err)
    assert found is None, f"{found[0]!r} in {out + err!r}"
    return int(ended.value.code or 0), out + err


def test_no_command_shows_them(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, run = str(place / "\x9b31m.jsonl"), str(place / "run\x1b[5m")
    for options in ([], ["--json"]):
        status, text = shown(capsys, monkeypatch, "run", path, "--run-dir", run, "--level", "detailed", *options)
        assert status == 1
        assert "4 lines have an error record" in text or options
    responses = str(Path(run) / "responses.jsonl")
    for form in ("table", "md", "html", "csv", "json"):
        status, text = shown(capsys, monkeypatch, "report", responses, "--by", "category", "--format", form)
        assert text
    for arguments in (
        ("report", path + "\x1b[1m"),
        ("run", f"{ESC}.jsonl"),
        ("run", path, "--run-dir", str(place)),
        ("run", path, "--model", f"/{ESC}"),
        ("run", path, f"--{ESC}"),
        (f"{ESC}",),
        ("compare", run, run),
        ("reconcile", run),
        ("replay", run, "--require", "acceptance_length>=99"),
        ("convert", responses, "--to", "aiperf", "--output", str(place / "out.jsonl")),
        ("report", "\udcff.jsonl"),
    ):
        _, text = shown(capsys, monkeypatch, *arguments)
        assert text
