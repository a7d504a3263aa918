"""Inputs of several files and behind URLs: the same requests as one local file that holds all of their lines."""

import gzip
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchspec.errors import DamagedInputError, UsageError
from batchspec.files import Columns, RowDefaults, open_source, read_requests
from batchspec.files.fingerprint import sha256_of
from batchspec.request import Intake

from .feeding import jsonl, read, rejected, served
from .remote import Place

FIRST = jsonl({"prompt": "a"}, {"prompt": "b", "id": "x"}) + b"\n\n"
SECOND = b"\xef\xbb\xbf" + jsonl({"prompt": "c"}) + b'oops\n{"prompt": "d", "id": "x"}'
THIRD = [{"prompt": "e", "temperature": 0}, {"prompt": "f", "temperature": 9}]


def parquet(rows: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


CONTENTS = {
    "part-0.jsonl": FIRST,
    "part-1.jsonl.gz": gzip.compress(SECOND),
    "part-2.parquet": parquet(THIRD),
    "_SUCCESS": b"",
    ".part-0.jsonl.crc": b"crc",
}


def make(directory: Path) -> Path:
    directory.mkdir()
    for name, data in CONTENTS.items():
        (directory / name).write_bytes(data)
    return directory


def seen(lines: list[Intake]) -> list[tuple[int, int, str | None]]:
    return [(line.index, line.line, line.custom_id) for line in lines]


EXPECTED = [
    (0, 1, "line-1"),
    (1, 2, "x"),
    (2, 5, "line-5"),
    (3, 6, None),
    (4, 7, "x"),
    (5, 8, "line-8"),
    (6, 9, "line-9"),
]


@pytest.mark.parametrize("pattern", ["", "/", "/part-*", "/part-[0-9].*"])
def test_part_files_are_one_input_in_the_order_of_their_names(tmp_path: Path, pattern: str) -> None:
    lines = read(f"{make(tmp_path / 'data')}{pattern}")
    assert seen(lines) == EXPECTED
    assert rejected(lines[3]).message.startswith("part-1.jsonl.gz line 2: the line is not JSON")
    repeated = rejected(lines[4]).message
    assert repeated.startswith('part-1.jsonl.gz line 3: "custom_id" "x" was already used on part-0.jsonl line 2')
    assert rejected(lines[6]).message.startswith('part-2.parquet row 2: "temperature" is the number 9')


def test_lines_are_numbered_as_if_the_files_stood_behind_each_other(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "a.jsonl").write_bytes(FIRST)
    (directory / "b.jsonl").write_bytes(SECOND)
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(FIRST + SECOND.removeprefix(b"\xef\xbb\xbf"))
    assert seen(read(directory)) == seen(read(whole))


@pytest.mark.parametrize("pattern", ["", "/part-*"])
def test_a_url_gives_what_the_files_give(tmp_path: Path, place: Place, pattern: str) -> None:
    for name, data in CONTENTS.items():
        place.write(name, data)
    local, remote = make(tmp_path / "data"), open_source(place.url + pattern)
    lines = list(read_requests(remote, columns=Columns(), defaults=RowDefaults()))
    assert lines == read(f"{local}{pattern}")
    here = open_source(local)
    list(here.rows())
    assert remote.sha256() == here.sha256()
    told, known = remote.dataset(), here.dataset()
    assert (told["size"], told["fingerprint"]) == (known["size"], known["fingerprint"])
    assert [part["path"] for part in told["parts"]] == [f"{place.url}/{name}" for name in sorted(CONTENTS)[2:]]


@pytest.mark.parametrize("name", ["part-0.jsonl", "part-1.jsonl.gz", "part-2.parquet"])
def test_one_file_is_the_same_behind_any_kind_of_path(tmp_path: Path, place: Place, name: str) -> None:
    path = make(tmp_path / "data") / name
    url = place.write(name, CONTENTS[name])
    assert read(f"file://{path}") == read(path) == read(url)
    assert open_source(f"file://{path}").dataset() == open_source(path).dataset()
    source = open_source(url)
    assert source.dataset() == open_source(path).dataset() | {"path": url}
    list(source.rows())
    assert source.sha256() == sha256_of(path)


def test_the_hash_of_several_files_is_that_of_their_hashes(tmp_path: Path) -> None:
    source = open_source(make(tmp_path / "data"))
    list(source.rows())
    hashes = "".join(f"{hashlib.sha256(CONTENTS[name]).hexdigest()}\n" for name in sorted(CONTENTS)[2:])
    assert source.sha256() == hashlib.sha256(hashes.encode()).hexdigest()


def test_the_number_of_rows_is_estimated_over_all_files(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    for name in "abc":
        (directory / f"{name}.jsonl").write_bytes(b'{"prompt": "hello"}\n' * 100)
    (directory / "d.parquet").write_bytes(parquet(THIRD))
    source = open_source(directory)
    assert source.num_rows is None
    next(source.rows())
    assert source.num_rows == 302


def test_files_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.jsonl").write_bytes(b"oops\n")
    lines = read(f"{tmp_path}/**/*.jsonl")
    assert [rejected(line).message.partition(" line 1:")[0] for line in lines] == [
        f"{tmp_path}/{name}/x.jsonl" for name in "ab"
    ]


def test_a_name_that_is_not_utf8_is_refused_without_being_shown(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl"))
    odd.write_bytes(FIRST)
    for path in (odd, tmp_path, f"{tmp_path}/*.jsonl"):
        with pytest.raises(UsageError, match=r"caf\ufffd\.jsonl has a name that is not UTF-8: rename the file"):
            open_source(path)


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].jsonl").write_bytes(FIRST)
    (tmp_path / "a1.jsonl").write_bytes(SECOND)
    assert served(read(tmp_path / "a[1].jsonl")[0]).custom_id == "line-1"


def test_what_names_no_input_is_a_sentence(tmp_path: Path, place: Place) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "README.md").write_text("x")
    (tmp_path / "mixed" / "a.jsonl").write_bytes(FIRST)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "below").mkdir()
    place.write("notes.txt", b"x")
    wrong: list[tuple[str | Path, str]] = [
        (f"{tmp_path}/*.csv", r"\*\.csv matches no file: check the pattern$"),
        (tmp_path / "empty", r"is a directory without files: give one that holds \.jsonl"),
        (
            tmp_path / "mixed",
            r'holds more than part files \("README.md"\): give a pattern in quotes, such as .*/\*\.jsonl',
        ),
        (tmp_path / "deep", r'more than part files \("below"\)'),
        (place.url, r'more than part files \("notes.txt"\)'),
        (f"{place.url}/*.jsonl", "matches no file"),
        (f"{place.url}/missing.jsonl", r"cannot be read \(there is no such file\): check the URL and the credentials"),
        ("nonsense://x/y.jsonl", "nonsense://x/y.jsonl cannot be opened .*nonsense"),
    ]
    for path, words in wrong:
        with pytest.raises(UsageError, match=words):
            open_source(path)


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("s3://bucket/a.jsonl", r"run pip install 'batchspec\[s3\]'"),
        ("gs://bucket/a.jsonl", r"run pip install 'batchspec\[gcs\]'"),
        ("simplecache::s3://bucket/*.jsonl", r"run pip install 'batchspec\[s3\]'"),
        ("abfs://box/a.jsonl", "needs a package that is not installed .*adlfs"),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, url: str, remedy: str) -> None:
    def missing(protocol: str) -> Any:
        raise ImportError("Install adlfs to access Azure")

    monkeypatch.setattr(fsspec.core, "get_filesystem_class", missing)
    with pytest.raises(UsageError, match=f"cannot be opened: .*{remedy}"):
        open_source(url)


class _Broken(fsspec.spec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A file system whose files break off in their middle, with an error of its own kind."""

    protocol = "broken"

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        return {"name": path, "size": 2**20, "type": "file"}

    def cat_file(self, path: str, start: int = 0, end: int = 0, **options: Any) -> bytes:
        return b"{" * (end - start)

    def _open(self, path: str, *rest: Any, **options: Any) -> Any:
        class File(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                data = super().read(size)
                if not data:
                    raise RuntimeError("the connection\nwas lost")
                return data

        return File(b'{"prompt": "a"}\n')


def test_a_remote_file_that_breaks_off_is_a_sentence_behind_the_rows_before_it() -> None:
    fsspec.register_implementation("broken", _Broken, clobber=True)
    rows = open_source("broken://x/a.jsonl").rows()
    assert next(rows)[0] == 1
    with pytest.raises(
        DamagedInputError, match=r"broken://x/a\.jsonl cannot be read further \(the connection was lost\): run the"
    ):
        next(rows)
