"""Whether responses are those of a run that has not ended yet: half a run must not pass for a whole one."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from batchspec.errors import UsageError
from batchspec.files.manifest import read_manifest

__all__ = ["unfinished_sentences"]

_RESPONSES = "responses.jsonl"
_CHUNK = 2**20


def unfinished_sentences(paths: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each run directory, named itself or by its responses, whose run has not finished.

    Args:
        paths: files, run directories, or whatever else a command takes; what is not of a run is passed over.
    """
    for path in dict.fromkeys(paths):
        directory = Path(path).parent if Path(path).name == _RESPONSES else Path(path)
        if _is_unfinished(directory):
            yield f"{path} is unfinished, {_num_rows(directory):,} rows so far: run the same command again"


def _is_unfinished(directory: Path) -> bool:
    try:
        manifest = read_manifest(directory / "manifest.json")
    except UsageError:
        return False
    return manifest is not None and manifest.get("status") not in (None, "finished")


def _num_rows(directory: Path) -> int:
    """Return how many whole lines the responses have."""
    try:
        with (directory / _RESPONSES).open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(_CHUNK), b""))
    except OSError:
        return 0
