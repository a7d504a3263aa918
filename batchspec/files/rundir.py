"""Whether a run may start in a directory, continue in it, or has ended in it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batchspec.errors import UsageError
from batchspec.files.lock import check_unlocked
from batchspec.files.manifest import differences, new_manifest, read_manifest
from batchspec.files.outputs import check_not_input, check_writable
from batchspec.files.runstate import OWN_FILES, RunState, RunStatus, found_manifest
from batchspec.files.urls import refuse_url

__all__ = ["open_run"]

_REMEDY = "use --overwrite or another --run-dir"
_SHARD = re.compile(r"shard-[0-9]+-of-[0-9]+")


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
    refuse_url(directory, why="a run directory has to be on this machine, for its records are flushed to the disk")
    check_writable(directory)
    for part in dataset.get("parts", [dataset]):
        for name in OWN_FILES:
            check_not_input(directory / name, input_path=part["path"])
    check_unlocked(directory)
    wanted = new_manifest(parameters=parameters, model=model, dataset=dataset)
    if overwrite:
        return RunState(directory=directory, status=RunStatus.FRESH, manifest=wanted, found=found_manifest(directory))
    manifest = read_manifest(directory / "manifest.json", remedy="use --overwrite to replace it or another --run-dir")
    if manifest is None:
        _check_empty(directory)
        return RunState(directory=directory, status=RunStatus.FRESH, manifest=wanted, found=None)
    _check_same(directory, manifest, wanted)
    status = RunStatus.FINISHED if manifest.get("status") == "finished" else RunStatus.RESUME
    return RunState(directory=directory, status=status, manifest=manifest, found=dict(manifest))


def _check_same(directory: Path, manifest: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    before, now = manifest["parameters"], wanted["parameters"]
    if ("grid" in before) != ("grid" in now):
        held, asked = ("a sweep", "a run") if "grid" in before else ("a run", "a sweep")
        raise UsageError(f"{directory} holds {held}, not {asked}: give another --run-dir")
    if before.get("shard") != now.get("shard"):
        held = f"shard {before['shard']}" if "shard" in before else "a run of the whole input"
        raise UsageError(f"{directory} holds {held}: give each shard a --run-dir of its own")
    changes = differences(manifest, wanted)
    if changes:
        raise UsageError(f"{directory} holds a run with other settings: {'; '.join(changes)}; {_REMEDY}")
    if wanted["dataset"].get("fingerprint") is None:
        raise UsageError(
            f"{directory} holds a run whose input was a stream, which cannot be told from this one: {_REMEDY}"
        )


def _check_empty(directory: Path) -> None:
    """Raise UsageError if a directory without a manifest holds anything but hidden files and the input's shards."""
    found = sorted(path.name for path in directory.iterdir()) if directory.exists() else []
    names = [name for name in found if name[0] != "." and _SHARD.fullmatch(name) is None]
    if names:
        raise UsageError(f"{directory} holds files but no run ({', '.join(names[:3])}): {_REMEDY}")
