"""A small model of the same vocabulary writes the draft.

After Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (arXiv 2211.17192); the verifier is
our own (see ``verify``).
"""

from collections.abc import Sequence as Many

from batchspec.drafting.means import DraftModel
from batchspec.drafting.none import NoDrafter
from batchspec.sequence import Sequence
from batchspec.step import Draft

__all__ = ["DraftModelDrafter"]


class DraftModelDrafter(NoDrafter):
    """Proposes what the draft model would choose in the target's place, with the same noise.

    Args:
        num_spec_tokens: the most tokens in one draft (k), at least 1.
        draft_model: writes the drafts.
    """

    def __init__(self, *, num_spec_tokens: int, draft_model: DraftModel):
        self.num_spec_tokens = num_spec_tokens
        self.draft_model = draft_model

    def propose(self, decoding: Many[Sequence], *, num_tokens: int | None = None) -> list[Draft]:
        """Return the drafts of all sequences whose context has room, of k tokens or of fewer that are asked for."""
        return self.draft_model.propose(decoding, num_tokens=num_tokens or self.num_spec_tokens)

    def end(self, sequence: Sequence) -> None:
        """Let the draft model forget the sequence."""
        self.draft_model.end(sequence)
