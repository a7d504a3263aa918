"""Prompts that begin alike are computed once: full blocks are labelled with all tokens up to their end.

The label is a hash over the tokens from the first on, block after block, as in vLLM's documentation page "Automatic
Prefix Caching". It is cryptographic, so that different prefixes do not meet.
"""

from hashlib import blake2b

from batchspec.blocks import BlockPool, num_blocks_for
from batchspec.sequence import Sequence

__all__ = ["PrefixCache"]

_LABEL_BYTES = 16


class PrefixCache:
    """Finds the computed blocks that a sequence can begin with, and labels those that it has computed.

    Args:
        pool: the blocks.

    Attributes:
        num_queries: prompt tokens looked up, once for each sequence.
        num_hits: those of them that were found.
    """

    def __init__(self, pool: BlockPool):
        self.pool = pool
        self.num_queries = 0
        self.num_hits = 0
        self._promised: set[bytes] = set()

    def begin_step(self) -> None:
        """Forget what the last step promised to compute."""
        self._promised.clear()

    def find(self, sequence: Sequence) -> list[int] | None:
        """Return the blocks that a waiting sequence can begin with; None if its next is being computed in this step.

        One token is always left to compute, as its logits are needed; so are all tokens whose log probabilities are.
        """
        if sequence.num_missing_prompt_logprobs:
            return []
        labels = self._labels(sequence, num_tokens=sequence.num_tokens - 1)
        found = self.pool.find(labels)
        return None if len(found) < len(labels) and labels[len(found)] in self._promised else found

    def fits(self, sequence: Sequence, found: list[int]) -> bool:
        """Whether the pool has room for the sequence and a further token, of which some blocks were found."""
        num_needed = num_blocks_for(sequence.num_tokens + 1, block_size=self.pool.block_size) - len(found)
        return num_needed <= self.pool.num_free - self.pool.num_unowned(found)

    def admit(self, sequence: Sequence, found: list[int]) -> None:
        """Let the sequence begin with the blocks that were found."""
        self.pool.share(found, sequence.blocks)
        sequence.num_labelled_blocks = len(found)
        sequence.num_computed_tokens = len(found) * self.pool.block_size
        if not sequence.num_preemptions:
            self.num_queries += sequence.num_tokens
            self.num_hits += sequence.num_computed_tokens

    def promise(self, sequence: Sequence, *, num_tokens: int) -> None:
        """Take note that this step computes the sequence's first ``num_tokens`` tokens."""
        self._promised.update(self._labels(sequence, num_tokens=min(num_tokens, sequence.num_tokens)))

    def keep(self, sequence: Sequence) -> None:
        """Label the sequence's full blocks of computed tokens, those behind a stop left out."""
        labels = self._labels(sequence, num_tokens=min(sequence.num_computed_tokens, sequence.num_tokens))
        for i in range(sequence.num_labelled_blocks, len(labels)):
            self.pool.label(sequence.blocks[i], labels[i])
        sequence.num_labelled_blocks = max(sequence.num_labelled_blocks, len(labels))

    def _labels(self, sequence: Sequence, *, num_tokens: int) -> list[bytes]:
        """Return the labels of the full blocks in the first tokens; they are computed once for each block."""
        size, labels = self.pool.block_size, sequence.block_labels
        num_blocks = num_tokens // size
        while len(labels) < num_blocks:
            start = len(labels) * size
            tokens = sequence.tokens[start : start + size].tobytes()
            labels.append(blake2b(tokens, key=labels[-1] if labels else b"", digest_size=_LABEL_BYTES).digest())
        return labels[:num_blocks]
