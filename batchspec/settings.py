"""What can be set about an engine: plain values, known without torch and without the model."""

from dataclasses import dataclass, field

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig
from batchspec.errors import UsageError

__all__ = ["LARGEST", "EngineSettings"]

LARGEST = 2**31 - 1  # of every count that a user can set


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """What a user can set about the engine.

    Attributes:
        max_num_seqs: the most sequences in the running batch.
        max_num_batched_tokens: the most tokens in one forward pass.
        max_model_len: the most tokens in a sequence; None for what the model's configuration allows.
        kv_cache_memory: bytes for keys and values; None for enough for a full batch, within a share of free memory.
        prefix_caching: compute beginnings that several sequences share once.
        speculative: the drafter's configuration.
        level: what is recorded for each request.
        timing: whether records carry timing fields.
    """

    max_num_seqs: int = 64
    max_num_batched_tokens: int = 2048
    max_model_len: int | None = None
    kv_cache_memory: int | None = None
    prefix_caching: bool = True
    speculative: SpeculativeConfig = field(default_factory=SpeculativeConfig)
    level: Level = Level.NONE
    timing: bool = False

    def check(self) -> None:
        """Raise UsageError for settings that cannot work, whatever the model."""
        for name in ("max_num_seqs", "max_num_batched_tokens"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}.")
        if self.max_model_len is not None and self.max_model_len < 2:
            raise UsageError(f"--max-model-len must be at least 2 (a prompt and an answer), not {self.max_model_len}.")
        if self.level is not Level.NONE and self.speculative.method == "none":
            raise UsageError(
                f"--level {self.level} records speculation, but --method none switches it off: "
                "choose a drafter or drop --level."
            )
        for name in ("max_num_seqs", "max_num_batched_tokens", "max_model_len"):
            if (getattr(self, name) or 0) > LARGEST:
                raise UsageError(f"--{name.replace('_', '-')} must be at most {LARGEST}, not {getattr(self, name)}.")
