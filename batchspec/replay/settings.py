"""What is to be replayed, checked before anything is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from batchspec.drafting import SpeculativeConfig
from batchspec.errors import UsageError
from batchspec.replay.agreement import Chooser
from batchspec.replay.costs import CostTable
from batchspec.settings import LARGEST

__all__ = ["ReplaySettings"]


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Everything about a replay.

    Attributes:
        paths: logs: files, run directories, or ``-``.
        configs: of the drafters, method by method.
        machine: names of ``Machine`` with the values that were given; None where a run's own, or the default, counts.
        tokenizer: directory of a tokenizer.json, for texts without token ids; None for none.
        prompts: the requests of those texts; None for none.
        costs: of a step; None to predict no times.
        open_draft_model: loads the draft model that a path names, None for the embedded one.
    """

    paths: tuple[str, ...]
    configs: tuple[SpeculativeConfig, ...]
    machine: Mapping[str, int | None] = field(default_factory=dict)
    tokenizer: str | None = None
    prompts: str | None = None
    costs: CostTable | None = None
    open_draft_model: Callable[[str | None], Chooser] | None = None

    def check(self) -> None:
        """Raise UsageError for settings that cannot work, whatever the logs hold."""
        for name, value in self.machine.items():
            if value is not None and not 1 <= value <= LARGEST:
                raise UsageError(f"--{name.replace('_', '-')} must be from 1 to {LARGEST}, not {value}.")
        if self.prompts is not None and self.tokenizer is None:
            raise UsageError("--prompts is for texts without token ids: give --tokenizer, too.")
        for config in self.configs:
            for path in self.paths if config.path is not None else ():
                self._check_not_itself(path, config.path or "")

    def _check_not_itself(self, path: str, recalled: str) -> None:
        """Raise UsageError if a log would be recalled to draft for itself."""
        names = (Path(path), Path(path) / "responses.jsonl")
        if path != "-" and any(name.exists() and Path(recalled).exists() and name.samefile(recalled) for name in names):
            raise UsageError(
                f"--recall-path {recalled} is the log that is replayed, whose drafts would all be right: "
                "give the responses of an earlier run."
            )
