"""The steps that a drafter would have taken over one recorded output."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchspec.replay.lookups import Lookups
from batchspec.replay.stepping import take

__all__ = ["NO_LIMIT", "Trace", "take_steps"]

NO_LIMIT = 1 << 40  # tokens

Steps = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The decode steps of one output, those without a draft counted only.

    Attributes:
        position: int32 (steps,), output tokens that stood before each step with a draft.
        drafted: int32 (steps,), its draft tokens.
        accepted: int32 (steps,), how many of them matched; of the last step, only those within what is known.
        num_decode_steps: all steps.
        num_output_tokens: of the output, the first of which came from the prefill.
    """

    position: Steps
    drafted: Steps
    accepted: Steps
    num_decode_steps: int
    num_output_tokens: int

    @property
    def num_discarded_tokens(self) -> int:
        """Matched or next tokens behind the end of the output."""
        return self.num_decode_steps + int(self.accepted.sum()) - max(0, self.num_output_tokens - 1)

    @property
    def rows(self) -> Steps:
        """Rows of the forward pass in every decode step, int32 (num_decode_steps,): one and the draft's."""
        return self._spread(self.drafted)

    @property
    def tokens(self) -> Steps:
        """Tokens that every decode step brought, int32 (num_decode_steps,), cut off or not."""
        return self._spread(self.accepted)

    def _spread(self, more: Steps) -> Steps:
        """Return 1 for each decode step, and more for those with a draft.

        A step without a draft brings one token, so a step stands behind as many others as tokens, less the accepted.
        """
        spread = np.ones(self.num_decode_steps, dtype=np.int32)
        spread[self.position - 1 - (np.cumsum(self.accepted) - self.accepted)] += more
        return spread


def take_steps(lookups: Lookups, *, num_spec_tokens: int, room: int = NO_LIMIT) -> Trace:
    """Return the steps of prompt lookup.

    Args:
        lookups: what was found before each output token.
        num_spec_tokens: the most tokens in a draft.
        room: the most output and draft tokens together.
    """
    drafted, agreed = lookups
    steps = np.empty((3, len(drafted)), dtype=np.int32)
    num_steps, num_decode_steps = take(drafted, agreed, num_spec_tokens, room, steps)
    position, lengths, accepted = steps[:, :num_steps].copy()
    return Trace(
        position=position,
        drafted=lengths,
        accepted=accepted,
        num_decode_steps=num_decode_steps,
        num_output_tokens=len(drafted),
    )
