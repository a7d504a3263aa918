"""Which outputs a draft may learn from where times decide anyway: those of all requests that have ended.

Drafts that are cut by what steps take differ from run to run. So their requests need not wait until it is certain what
they see, as those of ``generations`` do, which keeps parts of the batch empty.
"""

from collections import deque

from batchspec.drafting.generations import Generations, Output
from batchspec.sequence import Sequence

__all__ = ["Arrivals"]


class Arrivals(Generations):
    """Keeps the outputs of requests that have ended until they are taken, for everyone to see.

    Args:
        context: tokens of the prompt's end that are kept before every output.
        most: outputs to keep, the latest; -1 for all.

    Attributes:
        pending: outputs in the order in which they ended, until they are taken.
    """

    def __init__(self, *, context: int, most: int):
        self._most = most
        super().__init__(size=1, context=context)

    def _forget(self) -> None:
        super()._forget()
        self.pending: deque[Output] = deque(maxlen=None if self._most < 0 else self._most)

    @property
    def sentence(self) -> str:
        """What drafts learn from, for the manifest."""
        return "outputs of all requests that had ended, whichever those were"

    def begin(self, sequence: Sequence) -> None:  # noqa: ARG002
        """Note that a run has begun."""
        self._has_begun = True

    def end(self, sequence: Sequence) -> None:
        """Keep the output of a sequence; of one that failed nothing is seen."""
        if sequence.finish_reason in (None, "error"):
            return
        output = self._text(sequence)
        self.pending.append(output)
        if self.on_output is not None:
            self.on_output(sequence.request_index, sequence.sample_index, output)

    def remember(self, index: int, sample_index: int, output: Output) -> None:  # noqa: ARG002
        """Take in an output that an earlier part of the same run has made."""
        self.pending.append(output)

    def is_ready(self, sequence: Sequence) -> bool:  # noqa: ARG002
        """Return True: nobody waits."""
        return True
