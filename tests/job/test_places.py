"""A job whose input is several files, whose files are behind URLs, and whose responses are uploaded."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pyarrow.parquet as pq
import pytest

from batchspec.drafting import SpeculativeConfig
from batchspec.errors import UsageError
from batchspec.job.outcome import ExitStatus
from batchspec.job.settings import JobSettings, default_run_dir

from .conftest import RunLines

ROWS: list[Any] = [{"prompt": f"Say {word}:", "max_tokens": 5} for word in ("one", "two", "three")] + ["oops"]


@pytest.fixture
def url() -> Iterator[str]:
    place, files = f"memory://{uuid4().hex}", fsspec.filesystem("memory")
    yield place
    if files.exists(place):
        files.rm(place, recursive=True)


def put(url: str, rows: list[Any]) -> None:
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    fsspec.filesystem("memory").pipe_file(url, text.encode())


def without_names(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records without the sentences, which name files, and the times."""
    kept = json.loads(json.dumps(records))
    for record in kept:
        record["response"]["body"].pop("created", None)
        record["error"] = record["error"] and record["error"]["code"]
        if record["error"]:
            record["response"] = None
    return list(kept)


def test_part_files_behind_a_url_give_what_one_file_gives(run_lines: RunLines, url: str, tmp_path: Path) -> None:
    _, expected = run_lines(ROWS, run_dir=tmp_path / "one")
    put(f"{url}/part-0.jsonl", ROWS[:2])
    put(f"{url}/part-1.jsonl", ROWS[2:])
    outcome, records = run_lines([], run_dir=tmp_path / "several", input=url, output=f"{url}/out/all.jsonl")
    assert without_names(records) == without_names(expected)
    assert records[3]["error"]["message"].startswith("part-1.jsonl line 2: ")
    assert outcome.status is ExitStatus.FAILURES
    uploaded = fsspec.filesystem("memory").cat_file(f"{url}/out/all.jsonl")
    assert uploaded == (tmp_path / "several" / "responses.jsonl").read_bytes()
    manifest = json.loads((tmp_path / "several" / "manifest.json").read_bytes())
    assert [part["path"] for part in manifest["dataset"]["parts"]] == [f"{url}/part-{i}.jsonl" for i in range(2)]


def test_answers_behind_a_url_are_recalled(run_lines: RunLines, url: str, tmp_path: Path) -> None:
    rows = [row | {"id": str(i)} for i, row in enumerate(ROWS[:3])]
    run_lines(rows, run_dir=tmp_path / "old", output=f"{url}/old.parquet")
    lines = (tmp_path / "old" / "responses.jsonl").read_text().splitlines()
    put(f"{url}/old/0.jsonl", lines[:1])
    put(f"{url}/old/1.jsonl", lines[1:])
    recall = SpeculativeConfig(method="recall", path=f"{url}/old/*.jsonl")
    outcome, _ = run_lines(rows, run_dir=tmp_path / "new", speculative=recall, in_order=True)
    assert outcome.report is not None
    assert outcome.report["acceptance"]["pooled"]["draft_acceptance_rate"] > 0.5
    table = pq.read_table(tmp_path / "old" / "responses.parquet")
    assert table.num_rows == 3
    assert (
        fsspec.filesystem("memory").size(f"{url}/old.parquet")
        == (tmp_path / "old" / "responses.parquet").stat().st_size
    )


def test_a_failed_upload_is_a_failure_of_a_finished_run(
    run_lines: RunLines, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = fsspec.filesystem("memory")
    with monkeypatch.context() as broken:
        broken.setattr(type(files), "put_file", lambda *_, **__: (_ for _ in ()).throw(PermissionError("not\nyours")))
        outcome, records = run_lines(ROWS[:2], output=f"{url}/out.jsonl")
    assert outcome.status is ExitStatus.FAILURES
    assert outcome.report is not None
    (sentence,) = (one for one in outcome.sentences if "cannot be uploaded" in one)
    assert sentence == (
        f"output {url}/out.jsonl cannot be uploaded (not yours): the responses are in {tmp_path}/run/responses.jsonl; "
        "run the same command again to try once more"
    )
    assert len(records) == 2
    assert not files.exists(f"{url}/out.jsonl")
    again, _ = run_lines(ROWS[:2], output=f"{url}/out.jsonl")
    assert again.status is ExitStatus.DONE
    assert files.cat_file(f"{url}/out.jsonl") == (tmp_path / "run" / "responses.jsonl").read_bytes()


def test_nothing_is_served_for_places_that_cannot_be(run_lines: RunLines, url: str, tmp_path: Path) -> None:
    put(f"{url}/in.jsonl", ROWS)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"run_dir": Path(f"{url}/run")}, "is a URL.*a run directory has to be on this machine"),
        ({"input": f"{url}/in.jsonl", "output": f"{url}/in.jsonl"}, "is the input as well as an output"),
        ({"output": "s3://bucket/x.csv"}, r"give its name the extension \.jsonl or \.parquet"),
        ({"input": f"{url}/nothing-*.jsonl"}, "matches no file"),
    ]
    for settings, words in wrong:
        with pytest.raises(UsageError, match=words):
            run_lines(ROWS, **{"run_dir": tmp_path / "never", **settings})
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a/prompts.jsonl.gz", "reports/prompts"),
        ("shards/", "reports/shards"),
        ("shards/part-*.jsonl", "reports/shards"),
        ("*.jsonl", "reports/run"),
        ("s3://bucket/data/part-*.parquet", "reports/data"),
        ("hf://datasets/x/y/train.parquet", "reports/train"),
    ],
)
def test_where_a_run_goes_by_itself(given: str, expected: str) -> None:
    assert default_run_dir(given) == Path(expected)


def test_an_output_may_be_given_as_a_path(tmp_path: Path) -> None:
    JobSettings(input="-", run_dir=tmp_path, output=tmp_path / "a.jsonl").check()
