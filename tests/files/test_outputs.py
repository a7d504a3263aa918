import os
from pathlib import Path

import pytest

from batchspec.errors import UsageError
from batchspec.files import check_output


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl.gz"
    path.write_bytes(b"x")
    return path


def test_an_output_elsewhere_is_fine_and_not_made(tmp_path: Path, source: Path) -> None:
    output = tmp_path / "new" / "out.jsonl"
    check_output(output, input_path=str(source))
    check_output(output, input_path="-")
    assert not output.parent.exists()


@pytest.mark.parametrize("kind", ["same", "spelled", "symlink", "symlinked directory", "hardlink", "relative"])
def test_the_input_is_recognised_however_it_is_reached(
    tmp_path: Path, source: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.jsonl"
    if kind == "same":
        output = source
    elif kind == "spelled":
        output = tmp_path / "a" / ".." / source.name
    elif kind == "symlink":
        output.symlink_to(source)
    elif kind == "symlinked directory":
        (tmp_path / "link").symlink_to(tmp_path)
        output = tmp_path / "link" / source.name
    elif kind == "hardlink":
        os.link(source, output)
    else:
        monkeypatch.chdir(tmp_path)
        output = Path(source.name)
    with pytest.raises(UsageError, match="is the input as well as an output: choose another name"):
        check_output(output, input_path=str(source))


def test_a_directory_is_no_output(tmp_path: Path, source: Path) -> None:
    with pytest.raises(UsageError, match=r"is a directory: name a \.jsonl or \.parquet file"):
        check_output(tmp_path, input_path=str(source))


def test_a_file_is_no_directory_for_an_output(source: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        check_output(source / "out.jsonl", input_path="-")
