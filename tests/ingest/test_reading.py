"""Files, directories and streams that logs come in."""

import gzip
import io
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import fsspec
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchspec.errors import DamagedInputError, UsageError
from batchspec.files import responses_to_parquet
from batchspec.ingest import LogRecord, SkippedRow, read_logs

from .logs import ORACLE, SUMMARY, batch_line, body, read_rows, write_rows

GREEDY = ORACLE / "ngram_k3_n1-3" / "greedy.responses.jsonl"


def sums(paths: list[Path] | list[str]) -> tuple[int, int, int]:
    found = [entry.acceptance for entry in read_logs(paths) if isinstance(entry, LogRecord)]
    return (
        sum(one.num_spec_steps or 0 for one in found if one),
        sum(one.num_draft_tokens or 0 for one in found if one),
        sum(one.num_accepted_draft_tokens or 0 for one in found if one),
    )


SUMS = (509, 1524, 915)


def test_the_capture_of_a_server() -> None:
    assert sums([GREEDY]) == SUMS
    assert sums([GREEDY, GREEDY]) == (2 * 509, 2 * 1524, 2 * 915)


def test_bodies_without_their_lines_give_the_same(tmp_path: Path) -> None:
    bodies = [orjson.loads(line)["response"]["body"] for line in GREEDY.read_bytes().splitlines()]
    assert sums([write_rows(tmp_path / "bodies.jsonl", bodies)]) == SUMS


def test_compressed_files_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(GREEDY.read_bytes()))
    with pa.output_stream(tmp_path / "log.jsonl.zst", compression="zstd") as file:
        file.write(GREEDY.read_bytes())
    for name in ("log.jsonl.gz", "log.jsonl.zst"):
        assert sums([tmp_path / name]) == SUMS


def test_our_own_parquet_gives_the_same(tmp_path: Path) -> None:
    responses_to_parquet(jsonl_path=GREEDY, parquet_path=tmp_path / "log.parquet")
    assert sums([tmp_path / "log.parquet"]) == SUMS


def test_a_parquet_file_of_structs_gives_the_same(tmp_path: Path) -> None:
    bodies = [orjson.loads(line)["response"]["body"] for line in GREEDY.read_bytes().splitlines()]
    rows = [{"id": one["id"], "usage": one["usage"], "metrics": one["metrics"]} for one in bodies]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    assert sums([tmp_path / "log.parquet"]) == SUMS


def test_a_parquet_value_that_cannot_be_decoded_is_a_fault_of_its_row(tmp_path: Path) -> None:
    texts = pa.array([b'{"usage": {}}', b"\xff"], type=pa.binary()).cast(pa.string(), safe=False)
    pq.write_table(pa.table({"response": texts}), tmp_path / "log.parquet")
    good, bad = read_logs([tmp_path / "log.parquet"])
    assert isinstance(good, LogRecord)
    assert isinstance(bad, SkippedRow)
    assert bad.line == 2


def test_a_run_directory_stands_for_its_responses(tmp_path: Path) -> None:
    (tmp_path / "responses.jsonl").write_bytes(GREEDY.read_bytes())
    assert sums([tmp_path]) == SUMS
    record = next(iter(read_logs([tmp_path])))
    assert record.path == str(tmp_path)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(GREEDY.read_bytes())))
    assert sums(["-"]) == SUMS


MISTAKES = [
    ("missing.jsonl", "missing.jsonl"),
    (".", "is a directory without responses.jsonl"),
    ("", "the input path is empty"),
    ("zipped.jsonl", "give its name the extension .gz"),
]


@pytest.mark.parametrize(("name", "sentence"), MISTAKES)
def test_a_wrong_path_is_said_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zipped.jsonl").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(UsageError, match=sentence):
        read_logs([GREEDY, name])


def test_a_damaged_file_is_said_where_it_shows(tmp_path: Path) -> None:
    data = gzip.compress(GREEDY.read_bytes())
    (tmp_path / "log.jsonl.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(DamagedInputError, match=r"log\.jsonl\.gz cannot be read further"):
        list(read_logs([tmp_path / "log.jsonl.gz"]))


def test_line_numbers_count_blank_lines_and_the_first_may_have_a_mark(tmp_path: Path) -> None:
    line = orjson.dumps(batch_line(body(SUMMARY)))
    (tmp_path / "log.jsonl").write_bytes(b"\xef\xbb\xbf" + line + b"\r\n\n  \t\r\n" + line)
    assert [entry.line for entry in read_logs([tmp_path / "log.jsonl"])] == [1, 4]


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchspec.ingest.lines.split_blocks.__kwdefaults__", {"max_line_bytes": 2000})
    monkeypatch.setattr("batchspec.ingest.lines._CHUNK_BYTES", 512)
    good = batch_line(body(SUMMARY))
    first, second, third = read_rows(tmp_path / "log.jsonl", [good, b"[" + b"1," * 3000 + b"1]", good])
    assert isinstance(second, SkippedRow)
    assert second.message.startswith("the line is longer than")
    assert (first.line, second.line, third.line) == (1, 2, 3)


def test_names_of_what_was_read(tmp_path: Path) -> None:
    rows = [batch_line(body(SUMMARY), category="code"), body(SUMMARY), {"usage": {}, "custom_id": 5, "category": 5}]
    first, second, third = (entry for entry in read_rows(tmp_path / "log.jsonl", rows) if isinstance(entry, LogRecord))
    assert (first.custom_id, first.category, first.model, first.prompt_tokens) == ("a", "code", "m", 9)
    assert (second.custom_id, second.category) == ("cmpl-1", None)
    assert (third.custom_id, third.category) == (None, None)


def test_a_pattern_and_a_url_name_the_files_that_they_mean(tmp_path: Path) -> None:
    for name in "ba":
        write_rows(tmp_path / f"{name}.jsonl", [batch_line(body(SUMMARY), custom_id=name)])
    pattern, url = f"{tmp_path}/*.jsonl", f"memory://{tmp_path.name}/a.jsonl"
    assert [(row.path, row.custom_id) for row in read_logs([pattern])] == [
        (f"{tmp_path}/{name}.jsonl", name) for name in "ab"
    ]
    fsspec.filesystem("memory").pipe_file(url, (tmp_path / "a.jsonl").read_bytes())
    (remote,) = read_logs([url])
    (local,) = read_logs([tmp_path / "a.jsonl"])
    assert remote == replace(local, path=url)
    for missing in (f"{tmp_path}/*.csv", url + "x"):
        with pytest.raises(UsageError, match=r"matches no file|there is no such file"):
            read_logs([missing])
