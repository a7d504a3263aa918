"""A run that was interrupted is told from one that has finished."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.files.unfinished import unfinished_sentences


def run(directory: Path, **entries: Any) -> str:
    directory.mkdir()
    manifest = {"batchspec_version": "1", "parameters": {}, "model": {}, "dataset": {}, **entries}
    (directory / "manifest.json").write_bytes(orjson.dumps(manifest))
    (directory / "responses.jsonl").write_bytes(b'{"a": 1}\n{"a": 2}\n{"a"')
    return str(directory)


@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_a_run_that_has_not_ended(tmp_path: Path, status: str) -> None:
    """Named by its directory or by its file, once however often it is named."""
    path = run(tmp_path / "r", status=status)
    file = f"{path}/responses.jsonl"
    assert list(unfinished_sentences([path, path, file])) == [
        f"{name} is unfinished, 2 rows so far: run the same command again" for name in (path, file)
    ]


def test_responses_that_are_lost_are_none(tmp_path: Path) -> None:
    path = run(tmp_path / "r", status="running")
    (tmp_path / "r" / "responses.jsonl").unlink()
    assert list(unfinished_sentences([path])) == [f"{path} is unfinished, 0 rows so far: run the same command again"]


def test_what_is_whole_or_no_run_is_passed_over(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"")
    whole, unknown, foreign = run(tmp_path / "whole", status="finished"), run(tmp_path / "u"), run(tmp_path / "f")
    (tmp_path / "f" / "manifest.json").write_text('{"status": "running"}')
    paths = [whole, unknown, foreign, str(other), str(tmp_path), "-", "", "https://host/responses.jsonl", "*.jsonl"]
    assert list(unfinished_sentences(paths)) == []
