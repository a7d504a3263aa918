import gzip
import io
import random
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from batchspec.errors import DamagedInputError, UsageError
from batchspec.files import open_source
from batchspec.files.fingerprint import sha256_of

from .feeding import jsonl, read, served

ROWS = jsonl(*({"prompt": f"prompt {i}", "id": i} for i in range(3000)))


def compress(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data)
    return bytes(pa.compress(data, codec="zstd", asbytes=True)) if suffix == ".zst" else data


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.txt", "a", "a.jsonl.gz", "a.jsonl.zst", "A.JSONL.GZ"])
def test_every_container_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(compress(ROWS, path.suffix.lower()))
    source = open_source(path)
    assert [line for line, _ in source.rows()] == list(range(1, 3001))
    assert source.sha256() == sha256_of(path)
    assert served(read(path)[2999]).custom_id == "2999"


def test_members_of_a_concatenated_gzip_file_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b'{"prompt": "a"}\n') + gzip.compress(b'{"prompt": "b"}\n'))
    assert len(read(path)) == 2


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_truncated_compression_is_a_sentence_after_the_rows_before_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    big = b"".join(b'{"prompt": "%064x"}\n' % (i * i * 7919) for i in range(20000))
    path.write_bytes(compress(big, suffix)[:-9])
    numbers: list[int] = []
    with pytest.raises(DamagedInputError, match=r"a\.jsonl.* cannot be read further .* truncated or corrupt"):
        numbers.extend(number for number, _ in open_source(path).rows())
    assert numbers == list(range(1, len(numbers) + 1))
    assert 1000 < len(numbers) < 20000


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("data", [b"", b'{"prompt": "not compressed"}\n'])
def test_what_is_not_compressed_at_all_is_a_sentence(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(data)
    with pytest.raises(DamagedInputError, match="truncated or corrupt"):
        read(path)


def test_hash_is_unknown_until_the_end_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(ROWS)
    source = open_source(path)
    next(source.rows())
    assert source.sha256() is None


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_the_number_of_rows_is_estimated_from_the_part_that_was_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    dice = random.Random(0)
    lines = [b'{"prompt": "%064x"}' % dice.getrandbits(256) for _ in range(20000)]
    path.write_bytes(compress(b"\n".join(lines), suffix))
    source = open_source(path)
    assert source.num_rows is None
    rows = source.rows()
    next(rows)
    assert source.num_rows == pytest.approx(20000, rel=0.5 if suffix else 0.01)
    for _ in rows:
        pass
    assert source.num_rows == 20000


def test_standard_input_is_read_and_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BufferedReader(io.BytesIO(b'{"prompt": "a"}\nnonsense'))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(buffer))
    source = open_source("-")
    assert source.dataset() == {"path": "-", "size": None, "fingerprint": None}
    first, second = read("-")
    assert served(first).custom_id == "line-1"
    assert second.line == 2
    assert not buffer.closed


def test_paths_that_cannot_be_read_are_sentences(tmp_path: Path) -> None:
    for path, words in [
        (str(tmp_path / "missing.jsonl"), r"No such file.*check the path"),
        (str(tmp_path), "is a directory without files: give one that holds"),
        ("", "the input path is empty"),
        ("nul\0byte", "cannot be read"),
    ]:
        with pytest.raises(UsageError, match=words):
            open_source(path)


@pytest.mark.parametrize(("head", "suffix"), [(b"\x1f\x8b\x08", ".gz"), (b"(\xb5/\xfd", ".zst"), (b"PAR1", ".parquet")])
def test_a_format_hidden_behind_another_extension_is_named(tmp_path: Path, head: bytes, suffix: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(head + b"rest")
    with pytest.raises(UsageError, match=f"extension {suffix}$"):
        open_source(path)


def test_fingerprint_sees_size_head_and_tail(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    seen = set()
    for data in (b"a" * 3_000_000, b"b" + b"a" * 2_999_999, b"a" * 2_999_999 + b"b", b"a" * 2_999_999):
        path.write_bytes(data)
        seen.add(open_source(path).dataset()["fingerprint"])
    assert len(seen) == 4
