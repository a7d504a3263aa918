"""A file is replaced as a whole; what is no file is written through."""

import os
from pathlib import Path

import pytest

from batchspec.files.atomic import whole_file, write_whole


def test_what_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, b"old")
    with pytest.raises(FileNotFoundError), whole_file(path):
        (tmp_path / "missing").read_bytes()
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["a.txt"])


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "a.txt")
    for data in (b"first", b"2nd"):
        write_whole(link, data)
        assert link.is_symlink()
        assert (tmp_path / "a.txt").read_bytes() == data


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"text")
        assert os.read(reader, 9) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
