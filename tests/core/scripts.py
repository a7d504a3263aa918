"""Drafters and models with a known behaviour, for tests that need to know every step beforehand."""

from collections.abc import Callable
from collections.abc import Sequence as Many

import torch

from batchspec.drafting import NoDrafter
from batchspec.sequence import Sequence
from batchspec.step import Draft, StepPlan
from batchspec.testing import ByteTokenizer, ScriptedDrafter, TableModel

__all__ = ["EagerDrafter", "FailingModel", "count_on", "counting_drafter", "poisoned_model", "wrong_drafter"]

VOCAB = ByteTokenizer.vocab_size


def count_on(sequence: Sequence, num_tokens: int) -> list[int]:
    """What ``TableModel.counting`` answers next, also behind an end."""
    last = int(sequence.tokens[sequence.num_tokens - 1])
    return [(last + 1 + i) % VOCAB for i in range(num_tokens)]


def counting_drafter(k: int, *, right: int | None = None) -> ScriptedDrafter:
    """Drafts k tokens for a counting model, the first ``right`` of them right (all by default)."""

    def script(sequence: Sequence) -> list[int]:
        draft = count_on(sequence, k)
        return draft if right is None else draft[:right] + [(token + 1) % VOCAB for token in draft[right:]]

    return ScriptedDrafter(num_spec_tokens=k, script=script)


def wrong_drafter(k: int) -> ScriptedDrafter:
    return counting_drafter(k, right=0)


class EagerDrafter(NoDrafter):
    """Drafts for every sequence it has met, decoding or not, k tokens whatever room there is."""

    def __init__(self, *, num_spec_tokens: int, script: Callable[[Sequence, int], list[int]] = count_on):
        self.num_spec_tokens = num_spec_tokens
        self.script = script
        self.known: list[Sequence] = []
        self.num_proposed = 0

    def begin(self, sequence: Sequence) -> None:
        self.known.append(sequence)

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        self.num_proposed += len(self.known)
        return [Draft(sequence=item, token_ids=self.script(item, self.num_spec_tokens)) for item in self.known]

    def end(self, sequence: Sequence) -> None:
        self.known.remove(sequence)


class FailingModel(TableModel):
    """Raises in the forward passes with the given ordinals, 0-based."""

    def __init__(self, table: torch.Tensor, *, failing: Many[int], error: Callable[[], RuntimeError]):
        super().__init__(table)
        self.failing = failing
        self.error = error

    def forward(self, plan: StepPlan) -> torch.Tensor:
        logits = super().forward(plan)
        if self.num_forward_passes - 1 in self.failing:
            raise self.error()
        return logits


def poisoned_model(*tokens: int, value: float = float("nan"), table: torch.Tensor | None = None) -> TableModel:
    """A counting model (or another table) whose logits after the given tokens are all ``value``."""
    table = TableModel.counting().table if table is None else table.clone()
    table[list(tokens)] = value
    return TableModel(table)
