"""Uploads: there as a whole or not at all, and what went wrong as one sentence."""

from pathlib import Path
from typing import Any

import fsspec.implementations.memory
import pytest

from batchspec.errors import UsageError
from batchspec.files import check_destination, check_writable, open_run
from batchspec.files.upload import upload

from .remote import Place


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "responses.jsonl"
    path.write_bytes(b"x" * 100_000)
    return path


def test_an_upload_replaces_what_was_there_and_leaves_nothing_else(place: Place, local: Path) -> None:
    place.write("out.jsonl", b"old")
    upload(local, f"{place.url}/out.jsonl")
    upload(local, f"{place.url}/new/out.jsonl")
    assert place.read("out.jsonl") == place.read("new/out.jsonl") == local.read_bytes()
    assert place.names() == ["out.jsonl", "out.jsonl"]


@pytest.mark.parametrize("trouble", [RuntimeError("no\nroom"), OSError("no room")])
def test_a_failed_upload_leaves_what_was_there(
    place: Place, local: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    place.write("out.jsonl", b"old")

    def put_half(source: str, target: str, **options: Any) -> None:
        place.files.pipe_file(target, b"x" * 50_000)
        raise trouble

    monkeypatch.setattr(place.files, "put_file", put_half)
    with pytest.raises(OSError, match="no room"):
        upload(local, f"{place.url}/out.jsonl")
    assert place.read("out.jsonl") == b"old"
    assert place.names() == ["out.jsonl"]


def test_a_copy_that_arrives_cut_is_a_failure(place: Place, local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place.files, "put_file", lambda _, target: place.files.pipe_file(target, b"x" * 50_000))
    with pytest.raises(OSError, match="50000 bytes arrived of 100000"):
        upload(local, f"{place.url}/out.jsonl")


class _Objects(fsspec.implementations.memory.MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store whose objects appear when their upload has ended; it cannot rename."""

    protocol = "s3"
    store: dict[str, Any] = {}  # noqa: RUF012

    def mv(self, *_: Any, **__: Any) -> None:
        raise AssertionError("an object is not renamed")


def test_an_object_store_gets_the_object_at_once(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchspec.files.upload.filesystem", lambda url: (_Objects(), url.removeprefix("s3://")))
    upload(local, "s3://bucket/out.jsonl")
    assert _Objects().cat_file("bucket/out.jsonl") == local.read_bytes()


def test_destinations_that_cannot_be(tmp_path: Path, place: Place) -> None:
    url = place.write("in.jsonl", b"{}")
    check_destination(f"{place.url}/out.jsonl", inputs=[url])
    check_destination(f"file://{tmp_path}/out.jsonl", inputs=[str(tmp_path / "in.jsonl")])
    for output, words in [
        (url, "is the input as well as an output"),
        (f"file://{tmp_path}/in.jsonl", "is the input as well as an output"),
        (f"file://{tmp_path}", "is a directory"),
        ("nonsense://x/out.jsonl", "cannot be opened"),
    ]:
        with pytest.raises(UsageError, match=words):
            check_destination(output, inputs=[url, str(tmp_path / "in.jsonl")])


@pytest.mark.parametrize("url", ["s3://bucket/run", "memory://run", "hf://datasets/x/y"])
def test_a_run_directory_is_on_this_machine(url: str) -> None:
    with pytest.raises(UsageError, match=f"^{url} is a URL.*a run directory has to be on this machine"):
        open_run(Path(url), parameters={}, model={}, dataset={"path": "-"}, overwrite=False)
    with pytest.raises(UsageError, match=f"^{url} is a URL"):
        check_writable(Path(url))
