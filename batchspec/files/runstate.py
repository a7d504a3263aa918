"""The directory of a run while the run goes on: its manifest, its lock and its files."""

import os
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from batchspec.errors import UsageError
from batchspec.files.lock import take_lock
from batchspec.files.manifest import plain, read_manifest, write_manifest

__all__ = ["OWN_FILES", "RunState", "RunStatus", "clear_run", "found_manifest"]

OWN_FILES = (
    "manifest.json",
    "checkpoint.json",
    "responses.jsonl",
    "responses.parquet",
    "outputs.jsonl",
    "metrics.prom",
    "report.json",
    "report.md",
)


class RunStatus(StrEnum):
    """What ``open_run`` found."""

    FRESH = "fresh"
    RESUME = "resume"
    FINISHED = "finished"


class RunState:
    """A run directory that was found fit for the run; nothing is written before ``begin``. A context manager.

    Attributes:
        directory: which may not exist yet.
        status: what was found in it.
        manifest: of the run that was found, or of the one to begin.
    """

    def __init__(self, *, directory: Path, status: RunStatus, manifest: dict[str, Any], found: dict[str, Any] | None):
        self.directory = directory
        self.status = status
        self.manifest = manifest
        self._found = found
        self._lock: int | None = None

    def path(self, name: str) -> Path:
        """Return where a file of the run is kept."""
        return self.directory / name

    def begin(self, **fields: Any) -> None:
        """Make and lock the directory, clear what a fresh run replaces, and write the manifest as running.

        Args:
            fields: more entries of the manifest, such as ``versions``.

        Raises:
            UsageError: the directory cannot be written, or another run has written to it since it was opened.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.directory} cannot be made ({error.strerror}): choose another --run-dir") from error
        self._lock = take_lock(self.directory)
        if found_manifest(self.directory) != self._found:
            self.close()
            raise UsageError(f"another run has written to {self.directory} meanwhile: run the same command again")
        if self.status is RunStatus.FRESH:
            clear_run(self.directory)
        self.save(status="running", **fields)

    def save(self, **fields: Any) -> None:
        """Replace entries of the manifest (``status``, ``counts``, …) and write it atomically.

        Raises:
            UsageError: it cannot be written.
        """
        self.manifest |= plain(fields)
        write_manifest(self.path("manifest.json"), self.manifest)

    def close(self) -> None:
        """Let the directory go."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "RunState":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def found_manifest(directory: Path) -> dict[str, Any] | None:
    """Return the manifest in a directory; None when there is none or it is not one of ours."""
    try:
        return read_manifest(directory / "manifest.json")
    except UsageError:
        return None


def clear_run(directory: Path) -> None:
    """Remove the files that runs write; the manifest goes first, so that no old record passes for a new one."""
    try:
        for name in OWN_FILES:
            (directory / name).unlink(missing_ok=True)
            (directory / f".{name}.tmp").unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{directory} cannot be cleared ({error.strerror}): choose another --run-dir") from error
