"""Prompts that begin alike are computed once: full blocks are labelled with all tokens up to their end.

The label is a hash over the tokens from the first on, block after block, as in vLLM's documentation page "Automatic
Prefix Caching". It is cryptographic, so that different prefixes do not meet.
"""

from hashlib import blake2b

from batchspec.blocks import BlockPool
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

    def find(self, sequence: Sequence) -> list[int]:
        """Return the blocks that a waiting sequence can begin with.

        One token is always left to compute, as its logits are needed; so are all tokens whose log probabilities are.
        """
        return self.pool.find(self._wanted(sequence))

    def outlook(self, sequence: Sequence) -> tuple[int, bytes | None]:
        """Return how many blocks ``find`` finds, and the label of the next; None if no further one could be shared."""
        wanted = self._wanted(sequence)
        num_found = len(self.pool.find(wanted))
        return num_found, wanted[num_found] if num_found < len(wanted) else None

    def num_coming(self, sequence: Sequence) -> int:
        """Return how many blocks ``find`` will find after this step; 0 if no more than now."""
        wanted = self._wanted(sequence)
        num_found = num_coming = len(self.pool.find(wanted))
        while num_coming < len(wanted) and wanted[num_coming] in self._promised:
            num_coming += 1
        return num_coming if num_coming > num_found else 0

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

    def _wanted(self, sequence: Sequence) -> list[bytes]:
        """Return the labels of all blocks that a waiting sequence could begin with."""
        num_tokens = 0 if sequence.num_missing_prompt_logprobs else sequence.num_tokens - 1
        return self._labels(sequence, num_tokens=num_tokens)

    def _labels(self, sequence: Sequence, *, num_tokens: int) -> list[bytes]:
        """Return the labels of the full blocks in the first tokens; they are computed once for each block."""
        size, labels = self.pool.block_size, sequence.block_labels
        num_blocks = num_tokens // size
        while len(labels) < num_blocks:
            start = len(labels) * size
            tokens = sequence.tokens[start : start + size].tobytes()
            labels.append(blake2b(tokens, key=labels[-1] if labels else b"", digest_size=_LABEL_BYTES).digest())
        return labels[:num_blocks]
