"""Columns that no parameter is named after are told of once."""

import json
from pathlib import Path
from typing import Any

from batchspec.files import Columns, RowDefaults, open_source
from batchspec.files.reader import read_requests


def said_of(tmp_path: Path, *rows: dict[str, Any], columns: Columns | None = None) -> list[str]:
    path, said = tmp_path / "input.jsonl", list[str]()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    taken = read_requests(
        open_source(path), columns=columns or Columns(), defaults=RowDefaults(max_tokens=1), say=said.append
    )
    assert len(list(taken)) == len(rows)
    return said


def test_the_first_row_with_unknown_columns_is_told_of(tmp_path: Path) -> None:
    known = {"prompt": "a", "id": 1, "category": "x", "temperature": 0, "user": "me", "best_of": 1, "answer": None}
    odd = {"prompt": "a", "max_tokenz": 3, "reference": "b", "answer": None}
    assert said_of(tmp_path, known, odd, {"prompt": "b", "other": 1}) == [
        'input.jsonl line 2: no parameter is called "max_tokenz", "reference": ignored, here and below'
    ]


def test_named_columns_batch_lines_and_rejected_rows_are_not_told_of(tmp_path: Path) -> None:
    batch = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "a"}, "note": 1}
    named = {"text": "a", "key": "b"}
    assert said_of(tmp_path, named, columns=Columns(prompt="text", id="key")) == []
    assert said_of(tmp_path, batch, {"colour": "red"}) == []
