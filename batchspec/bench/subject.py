"""The model that is measured, and engines that run it."""

from dataclasses import dataclass, replace
from typing import Any

from batchspec.acceptance import Level
from batchspec.bench.job import Job
from batchspec.bench.prompts import Prompts
from batchspec.drafting import SpeculativeConfig
from batchspec.engine import EngineCore
from batchspec.launch import build_engine
from batchspec.model.device.opening import page_size
from batchspec.model.load import LoadedModel
from batchspec.settings import EngineSettings

__all__ = ["WITHOUT", "Subject"]

WITHOUT = SpeculativeConfig.from_mapping({"method": "none"})


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A loaded model, the engine settings to run it with, and prompts for it.

    Attributes:
        loaded: the model.
        settings: of engines that run it, unless a measurement needs others.
        prompts: what it generates from.
    """

    loaded: LoadedModel
    settings: EngineSettings
    prompts: Prompts

    @property
    def dtype(self) -> str:
        """The name of the weights' dtype."""
        return str(self.loaded.dtype).removeprefix("torch.")

    @property
    def block_size(self) -> int:
        """Tokens in a block of the engines' caches."""
        return page_size(self.loaded.device, self.loaded.dtype)

    @property
    def tokens(self) -> list[int]:
        """The tokens of all prompts, one behind another."""
        return [token for token_ids in self.prompts.token_ids for token in token_ids]

    def engine(self, *, is_speculating: bool = True, **changes: Any) -> EngineCore:
        """Return a new engine, its cache empty; the model is loaded once.

        Args:
            is_speculating: draft as the settings say; otherwise not at all, and record nothing about it.
            changes: fields of the settings that are different.
        """
        if not is_speculating:
            changes = {"speculative": WITHOUT, "level": Level.NONE} | changes
        return build_engine(self.loaded, replace(self.settings, **changes))

    def engine_for(self, job: Job, *, is_speculating: bool = True, **changes: Any) -> EngineCore:
        """Return a new engine that is no larger than the job needs, so that others have room beside it."""
        return self.engine(
            is_speculating=is_speculating,
            max_num_seqs=job.max_num_seqs,
            max_model_len=self.settings.max_model_len or self.room_for(job),
            **changes,
        )

    def room_for(self, job: Job) -> int:
        """Return the tokens of the job's longest sequence, and of a draft behind it if the context has room for one."""
        return min(job.longest + 1 + self.settings.speculative.num_speculative_tokens, self.loaded.context_length)
