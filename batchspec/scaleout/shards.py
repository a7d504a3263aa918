"""The run directories of shards: found, read, and held beside each other before anything is merged."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from batchspec.errors import UsageError
from batchspec.files.manifest import read_manifest
from batchspec.files.runstate import found_manifest
from batchspec.files.wording import shown
from batchspec.job.shard import Shard, parse_shard

__all__ = ["ShardRun", "check_together", "find_shards"]

_DIRECTORY = re.compile(r"shard-[0-9]+-of-[0-9]+")


@dataclass(frozen=True, kw_only=True)
class ShardRun:
    """A shard that was served to its end.

    Attributes:
        directory: its run directory.
        manifest: of the run.
        shard: which share it is.
        state: the account in its last checkpoint.
        exposition: the text of its ``metrics.prom``.
    """

    directory: Path
    manifest: Mapping[str, Any]
    shard: Shard
    state: Mapping[str, Any]
    exposition: str

    @property
    def num_records(self) -> int:
        """How many records its manifest says that it has."""
        return int(self.manifest["counts"]["num_requests"])

    @property
    def responses(self) -> Path:
        """Where its records are."""
        return self.directory / "responses.jsonl"


def find_shards(directories: Sequence[Path]) -> list[ShardRun]:
    """Return the shards in these directories, in order; a directory may hold the shards' directories itself.

    Raises:
        UsageError: a directory holds neither, or a shard that is not finished or whose files are damaged.
    """
    found = [_read(directory) for given in directories for directory in _expanded(given)]
    return sorted(found, key=lambda run: (run.shard.count, run.shard.index))


def _expanded(directory: Path) -> list[Path]:
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory: give the run directories of shards")
    found = found_manifest(directory)
    if found is not None and "shard" in found["parameters"]:
        return [directory]
    inside = sorted(path for path in directory.iterdir() if path.is_dir() and _DIRECTORY.fullmatch(path.name))
    if not inside:
        manifest = read_manifest(directory / "manifest.json")
        what = "no run" if manifest is None else "a run of the whole input"
        raise UsageError(f"{directory} holds {what}: give the run directories of shards, made with run --shard i/n")
    return inside


def _read(directory: Path) -> ShardRun:
    manifest = read_manifest(directory / "manifest.json")
    if manifest is None or "shard" not in manifest["parameters"]:
        raise UsageError(f"{directory} holds no shard: run it with --shard i/n")
    shard, _ = parse_shard(str(manifest["parameters"]["shard"]), {})
    if manifest.get("status") != "finished":
        raise UsageError(
            f"shard {shard} in {directory} is not finished ({manifest.get('status')}): run its command again to go on"
        )
    path = directory / "checkpoint.json"
    try:
        state = orjson.loads(path.read_bytes())["state"]
        exposition = (directory / "metrics.prom").read_text()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"shard {shard} in {directory} has lost its counters ({error}): copy it again") from error
    return ShardRun(directory=directory, manifest=manifest, shard=shard, state=state, exposition=exposition)


def check_together(runs: Sequence[ShardRun]) -> None:
    """Raise UsageError unless these are all the shards of one input, each once, served alike; it names the odd one."""
    for label, value_of in _MUST_AGREE.items():
        _check_equal(runs, label, value_of)
    for part, label in (("parameters", "--{}"), ("resolved", "the resolved {}")):
        for name in dict.fromkeys(name for run in runs for name in run.manifest.get(part, {})):
            if name != "shard":
                flag = name.replace("_", "-") if part == "parameters" else name
                _check_equal(runs, label.format(flag), _value(part, name))
    seen: dict[int, ShardRun] = {}
    for run in runs:
        other = seen.setdefault(run.shard.index, run)
        if other is not run:
            raise UsageError(f"shard {run.shard} is there twice, in {other.directory} and {run.directory}: give one")
    count = runs[0].shard.count
    missing = [f"{index}/{count}" for index in range(count) if index not in seen]
    if missing:
        which = f"shard {missing[0]} is" if len(missing) == 1 else f"shards {', '.join(missing)} are"
        raise UsageError(f"{which} missing: give the run directory, or make it with run --shard {missing[0]}")


def _check_equal(runs: Sequence[ShardRun], label: str, value_of: Callable[[ShardRun], Any]) -> None:
    """Raise UsageError for the first run with another value than most have."""
    values = [orjson.dumps(value_of(run)) for run in runs]
    most = Counter(values).most_common(1)[0][0]
    for run, value in zip(runs, values, strict=True):
        if value != most:
            other = runs[values.index(most)]
            raise UsageError(
                f"{run.directory} does not belong with {other.directory}: {label} is "
                f"{shown(value_of(run))} in the former and {shown(value_of(other))} in the latter"
            )


def _value(part: str, name: str) -> Callable[[ShardRun], Any]:
    return lambda run: run.manifest.get(part, {}).get(name, "not set")


_MUST_AGREE: dict[str, Callable[[ShardRun], Any]] = {
    "the number of shards": lambda run: run.shard.count,
    "the version of batchspec": lambda run: run.manifest["batchspec_version"],
    "the input's sha256": _value("dataset", "sha256"),
    "the model's name": _value("model", "name"),
    "the model's fingerprint": _value("model", "fingerprint"),
}
