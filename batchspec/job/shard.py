"""Which share of an input a run serves, so that several runs together serve all of it."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.errors import UsageError

__all__ = ["RowsToPassOver", "Shard", "learning_of", "parse_shard", "shard_from_environment"]

_FORM = "write it like 0/4, from 0/4 to 3/4, or env to take it from the environment"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The rows of an input whose 0-based index leaves ``index`` when it is divided by ``count``.

    Neighbours go to different shards, so that shards are alike whatever the order of the input, and which row belongs
    where is known before the input has come to its end.

    Attributes:
        index: 0 <= index < count.
        count: shards altogether.
    """

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def directory(self) -> str:
        """The name of its run directory, unless the user gives one."""
        return f"shard-{self.index}-of-{self.count}"

    def holds(self, row: int) -> bool:
        """Whether the row of a 0-based index is in it."""
        return row % self.count == self.index

    def num_rows(self, num_rows: int) -> int:
        """Return how many rows it has of an input of so many."""
        return max(0, num_rows - self.index + self.count - 1) // self.count


class RowsToPassOver(Container[int]):
    """Indices of rows that a run leaves alone: those of other shards, and those that have a record.

    Args:
        shard: None for a run that serves the whole input.
        finished: indices of rows with a record.
    """

    def __init__(self, shard: Shard | None, finished: Container[int]):
        self._shard = shard
        self._finished = finished

    def __contains__(self, index: object) -> bool:
        is_foreign = self._shard is not None and isinstance(index, int) and not self._shard.holds(index)
        return is_foreign or index in self._finished


def parse_shard(text: str, environment: Mapping[str, str]) -> tuple[Shard, str]:
    """Return the shard that ``--shard`` asks for, and a sentence if it is from the environment, else "".

    Raises:
        UsageError: it is neither ``i/n`` with 0 <= i < n nor ``env``, or the environment does not tell one shard.
    """
    if text == "env":
        return shard_from_environment(environment)
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None:
        raise UsageError(f"--shard {text!r} is not a shard: {_FORM}.")
    index, count = int(match[1]), int(match[2])
    if not index < count:
        raise UsageError(f"--shard {text}: shards count from 0, so that the first must be below the second: {_FORM}.")
    return Shard(index=index, count=count), ""


def shard_from_environment(environment: Mapping[str, str]) -> tuple[Shard, str]:
    """Return the shard that a launcher names, and a sentence that says where it is from.

    ``RANK`` and ``WORLD_SIZE`` count from 0, as torchrun sets them. The ids of a SLURM job array begin where the array
    does and may have a step (``SLURM_ARRAY_TASK_ID``, ``_COUNT``, ``_MIN``, ``_STEP``).

    Raises:
        UsageError: nothing is set, only a part of it, numbers that name no shard, or both and they disagree.
    """
    found = {name: shard for name, read in _LAUNCHERS.items() if (shard := read(environment)) is not None}
    if not found:
        raise UsageError(
            "--shard env found neither RANK and WORLD_SIZE nor SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT: "
            "set them or write --shard 0/4."
        )
    if len(set(found.values())) > 1:
        told = " and ".join(f"{name} say {shard}" for name, shard in found.items())
        raise UsageError(f"--shard env is ambiguous, for {told}: write the one that is meant, as --shard 0/4.")
    name, shard = next(iter(found.items()))
    return shard, f"serving shard {shard}, as {name} say"


def learning_of(shard: Shard, resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return an engine's ``resolved`` for a run that serves a shard: what drafts learn from ends at its border."""
    learning = resolved.get("drafts_learn_from")
    if learning is None:
        return dict(resolved)
    return {**resolved, "drafts_learn_from": f"{learning}, of the same of {shard.count} shards"}


def _from_ranks(environment: Mapping[str, str]) -> Shard | None:
    rank, size = _number(environment, "RANK"), _number(environment, "WORLD_SIZE")
    if rank is None and size is None:
        return None
    if rank is None or size is None:
        raise UsageError("--shard env needs RANK and WORLD_SIZE, and only one of them is set: write --shard 0/4.")
    if not rank < size:
        raise UsageError(f"--shard env: RANK {rank} is not below WORLD_SIZE {size}: ranks count from 0.")
    return Shard(index=rank, count=size)


def _from_slurm(environment: Mapping[str, str]) -> Shard | None:
    names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP")
    task, count, first, step = (_number(environment, name) for name in names)
    if task is None and count is None:
        return None
    if task is None or count is None:
        raise UsageError(
            "--shard env needs SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT, and only one of them is set: "
            "write --shard 0/4."
        )
    place, rest = divmod(task - (first or 0), step or 1)
    if rest or not 0 <= place < count:
        raise UsageError(
            f"--shard env: SLURM_ARRAY_TASK_ID {task} is none of {count} ids that follow one another from "
            f"{first or 0}: start the array as --array=0-{max(count, 1) - 1}, or write --shard 0/4."
        )
    return Shard(index=place, count=count)


def _number(environment: Mapping[str, str], name: str) -> int | None:
    """Return a variable's number; None where it is not set."""
    value = environment.get(name, "").strip()
    if not value:
        return None
    if re.fullmatch(r"[0-9]{1,9}", value) is None:
        raise UsageError(f"--shard env: {name} is {value!r} and not a number from 0 on: write --shard 0/4.")
    return int(value)


_LAUNCHERS = {"RANK and WORLD_SIZE": _from_ranks, "SLURM_ARRAY_TASK_ID and _COUNT": _from_slurm}
