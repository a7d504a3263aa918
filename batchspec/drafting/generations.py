"""Which outputs a draft may learn from, whatever the timing: those of all generations but its own and the one before.

Requests belong to generations by their index in the input. A request may start to run once all requests from two
generations before have ended, or have come so far that what is seen of them is certain. So what a draft sees depends on
the input alone: not on the size of the batch, not on who was faster, not on an interruption.

So that one very long output does not keep everyone waiting, only the beginning of an output is seen: twice the median
of two generations before, a number that depends on texts alone.
"""

from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray

from batchspec.sequence import Sequence

__all__ = ["Generations", "Output"]

_FIRST_LENGTH = 256  # tokens seen of an output of the first two generations
_LEAST_LENGTH = 16

Output = NDArray[np.int64]
"""The end of a prompt and the output that followed, or its beginning: int64 (n,)."""


class Generations:
    """Keeps the outputs of requests until they may be seen.

    Args:
        size: requests of a generation.
        context: tokens of the prompt's end that are kept before every output.

    Attributes:
        on_output: called with request index, sample index and output when a sequence has ended.
        visible: the outputs of generations that are certain, until they are taken.
        num_settled: generations that are certain.
        num_restarts: how often everything was forgotten.
    """

    def __init__(self, *, size: int, context: int):
        self.size = size
        self.context = context
        self.num_restarts = 0
        self.on_output: Callable[[int, int, Output], None] | None = None
        self._has_begun = False
        self._forget()

    def _forget(self) -> None:
        self.visible: dict[int, list[Output]] = {}
        self.num_settled = 0
        self._requests: dict[int, dict[int, Sequence | Output]] = {}
        self._lengths = [_FIRST_LENGTH, _FIRST_LENGTH]
        self._awaited: Sequence | None = None

    def restart(self) -> None:
        """Forget everything if requests have begun: another run counts its own from 0."""
        if self._has_begun:
            self._has_begun = False
            self.num_restarts += 1
            self._forget()

    @property
    def sentence(self) -> str:
        """What drafts learn from, for the manifest."""
        return f"outputs of requests with an index below {self.size} * (its own // {self.size} - 1)"

    def of(self, sequence: Sequence) -> int:
        """Return the generation of a sequence's request."""
        return sequence.request_index // self.size

    def begin(self, sequence: Sequence) -> None:
        """Note a sequence that enters the engine; further turns of a conversation are nobody else's business."""
        self._has_begun = True
        if self.of(sequence) >= self.num_settled:
            self._requests.setdefault(sequence.request_index, {}).setdefault(sequence.sample_index, sequence)

    def end(self, sequence: Sequence) -> None:
        """Note that a sequence has ended; of one that failed nothing is seen."""
        samples = self._requests.get(sequence.request_index, {})
        if samples.get(sequence.sample_index) is sequence:
            has_failed = sequence.finish_reason in (None, "error")
            output = np.zeros(0, dtype=np.int64) if has_failed else self._text(sequence)
            samples[sequence.sample_index] = output
            if self.on_output is not None and not has_failed:
                self.on_output(sequence.request_index, sequence.sample_index, output)

    def remember(self, index: int, sample_index: int, output: Output) -> None:
        """Take in an output that an earlier part of the same run has made."""
        self._requests.setdefault(index, {})[sample_index] = output

    def is_ready(self, sequence: Sequence) -> bool:
        """Whether all that the sequence may see is certain; then it is in ``visible``, by generation."""
        while self.num_settled < self.of(sequence) - 1:
            if self._is_awaited() or not self._settle(self.num_settled):
                return False
        return True

    def is_within(self, sequence: Sequence) -> bool:
        """Whether the sequence is no longer than what others will see of it.

        Beyond that nobody waits for it, and what it saw itself may have been renewed.
        """
        generation = self.of(sequence)
        return generation < len(self._lengths) and sequence.num_output_tokens <= self._lengths[generation]

    def _is_awaited(self) -> bool:
        """Whether the sequence that was last waited for still keeps others waiting."""
        sequence = self._awaited
        if sequence is None:
            return False
        is_running = self._requests[sequence.request_index][sequence.sample_index] is sequence
        if is_running and self.is_within(sequence):
            return True
        self._awaited = None
        return False

    def _settle(self, generation: int) -> bool:
        """Make a generation's outputs visible, in the order of the input; return whether they are certain."""
        members = sorted(index for index in self._requests if index // self.size == generation)
        outputs = [each for index in members for _, each in sorted(self._requests[index].items(), key=_sample_index)]
        for output in outputs:
            if isinstance(output, Sequence) and self.is_within(output):
                self._awaited = output
                return False
        for index in members:
            del self._requests[index]
        longest = self.context + self._lengths[generation]
        texts = [self._text(output) if isinstance(output, Sequence) else output for output in outputs]
        self.visible[generation] = [text[:longest] for text in texts if len(text)]
        lengths = [len(text) - self.context for text in self.visible[generation]]
        self._lengths.append(max(_LEAST_LENGTH, round(2 * median(lengths))) if lengths else self._lengths[generation])
        self.num_settled += 1
        return True

    def _text(self, sequence: Sequence) -> Output:
        start = sequence.num_prompt_tokens
        padding = np.full(max(0, self.context - start), -1, dtype=np.int64)
        return np.concatenate([padding, sequence.tokens[max(0, start - self.context) : sequence.num_tokens]])


def _sample_index(item: tuple[int, Sequence | Output]) -> int:
    return item[0]
