"""The directory of a run: whether a run may start in it, continue in it, or has ended in it."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from batchspec.errors import UsageError
from batchspec.files.lock import check_unlocked, take_lock
from batchspec.files.manifest import differences, new_manifest, plain, read_manifest, write_manifest
from batchspec.files.outputs import check_not_input, check_writable

__all__ = ["OWN_FILES", "RunState", "RunStatus", "open_run"]

OWN_FILES = (
    "manifest.json",
    "checkpoint.json",
    "responses.jsonl",
    "responses.parquet",
    "metrics.prom",
    "report.json",
    "report.md",
)
_REMEDY = "use --overwrite or another --run-dir"


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
        if _found_manifest(self.directory) != self._found:
            self.close()
            raise UsageError(f"another run has written to {self.directory} meanwhile: run the same command again")
        if self.status is RunStatus.FRESH:
            _clear(self.directory)
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


def open_run(
    directory: Path,
    *,
    parameters: Mapping[str, Any],
    model: Mapping[str, Any],
    dataset: Mapping[str, Any],
    overwrite: bool,
) -> RunState:
    """Look at a run directory and say what a run with these settings would do in it; nothing is written.

    Args:
        directory: may be missing.
        parameters: everything that must be the same for a run to be continued; names as the flags', with underscores.
        model: what identifies the model.
        dataset: what ``InputSource.dataset`` returned.
        overwrite: start afresh whatever the directory holds; only files named in ``OWN_FILES`` are replaced.

    Raises:
        UsageError: the directory cannot be used, is in use, holds other files or another run, or holds the input.
    """
    check_writable(directory)
    for name in OWN_FILES:
        check_not_input(directory / name, input_path=dataset["path"])
    check_unlocked(directory)
    wanted = new_manifest(parameters=parameters, model=model, dataset=dataset)
    if overwrite:
        return RunState(directory=directory, status=RunStatus.FRESH, manifest=wanted, found=_found_manifest(directory))
    manifest = read_manifest(directory / "manifest.json")
    if manifest is None:
        _check_empty(directory)
        return RunState(directory=directory, status=RunStatus.FRESH, manifest=wanted, found=None)
    _check_same(directory, manifest, wanted)
    status = RunStatus.FINISHED if manifest.get("status") == "finished" else RunStatus.RESUME
    return RunState(directory=directory, status=status, manifest=manifest, found=dict(manifest))


def _check_same(directory: Path, manifest: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    changes = differences(manifest, wanted)
    if changes:
        raise UsageError(f"{directory} holds a run with other settings: {'; '.join(changes)}; {_REMEDY}")
    if wanted["dataset"].get("fingerprint") is None:
        raise UsageError(
            f"{directory} holds a run whose input was a stream, which cannot be told from this one: {_REMEDY}"
        )


def _check_empty(directory: Path) -> None:
    """Raise UsageError if a directory without a manifest holds anything but hidden files."""
    names = sorted(path.name for path in directory.iterdir() if path.name[0] != ".") if directory.exists() else []
    if names:
        raise UsageError(f"{directory} holds files but no run ({', '.join(names[:3])}): {_REMEDY}")


def _found_manifest(directory: Path) -> dict[str, Any] | None:
    try:
        return read_manifest(directory / "manifest.json")
    except UsageError:
        return None


def _clear(directory: Path) -> None:
    """Remove the files that runs write; the manifest goes first, so that no old record passes for a new one."""
    try:
        for name in OWN_FILES:
            (directory / name).unlink(missing_ok=True)
            (directory / f".{name}.tmp").unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{directory} cannot be cleared ({error.strerror}): choose another --run-dir") from error
