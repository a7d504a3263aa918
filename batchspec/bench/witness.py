"""What came of an engine's steps, seen from outside: from what its scheduler commits and reaps, and nothing else."""

from typing import Any

from batchspec.engine import EngineCore
from batchspec.sequence import Sequence
from batchspec.step import Outcome

__all__ = ["Outputs", "Witness"]

Outputs = dict[tuple[int, int, int], bytes]
"""The token ids that sequences ended with, by request index, sample index and tokens of the prompt."""


class Witness:
    """Counts what decode steps bring, and keeps what every sequence ended with.

    Args:
        core: to be watched from now on; its own counts are not asked.

    Attributes:
        num_decode_steps: steps of single sequences behind their first token, with a draft or without one.
        num_decoded_tokens: tokens that reached an output in them.
        num_drafts: those of the steps that had a draft.
        outputs: of the sequences that have ended.
    """

    def __init__(self, core: EngineCore):
        self.num_decode_steps = 0
        self.num_decoded_tokens = 0
        self.num_drafts = 0
        self.outputs: Outputs = {}
        self._commit = core.scheduler.commit
        self._reap = core.scheduler.reap
        vars(core.scheduler).update(commit=self._see_outcomes, reap=self._see_ended)

    def _see_outcomes(self, *args: Any, **kwargs: Any) -> list[Outcome]:
        outcomes = self._commit(*args, **kwargs)
        for outcome in outcomes:
            if outcome.seconds is not None:
                self.num_decode_steps += 1
                self.num_decoded_tokens += len(outcome.token_ids)
                self.num_drafts += outcome.num_drafted > 0
        return outcomes

    def _see_ended(self) -> list[Sequence]:
        ended = self._reap()
        for sequence in ended:
            key = sequence.request_index, sequence.sample_index, sequence.num_prompt_tokens
            self.outputs[key] = sequence.tokens[sequence.num_prompt_tokens : sequence.num_tokens].tobytes()
        return ended
