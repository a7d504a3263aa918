"""A trie of every suffix of some texts, with counts, that grows token by token.

This is the structure of SuffixDecoding (Oliaro et al., arXiv 2411.04975), as a trie of bounded depth whose nodes are
made lazily: a context that occurred once is one leaf, which points into the text, so that memory grows with what is
repeated. Appending a token takes at most ``max_depth`` steps, whatever the texts' length; nothing is ever searched.
"""

from dataclasses import dataclass
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from batchspec.drafting.trie_kernels import append, draft, follow, place_all

__all__ = ["NOTHING", "Continuation", "Reader", "SuffixTrie"]

_SLICE = 64  # tokens appended at a time, so that there is always room for their nodes
_NO_TOKEN = -1  # behind the end of a text


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """The likeliest continuation of a context.

    Attributes:
        token_ids: none where nothing followed.
        token_probs: of each, how often it followed what stands before it.
        match_length: tokens of the context that occurred before.
    """

    token_ids: list[int]
    token_probs: list[float]
    match_length: int

    @property
    def expected(self) -> float:
        """Tokens that will be accepted, if texts go on as they did."""
        return float(sum(accumulate(self.token_probs, mul)))


NOTHING = Continuation(token_ids=[], token_probs=[], match_length=0)


class SuffixTrie:
    """Counts of what followed each context of up to ``max_depth - 1`` tokens.

    Args:
        max_depth: tokens of a context and what follows it.
    """

    def __init__(self, *, max_depth: int):
        self.max_depth = max_depth
        self._text = np.full(256, _NO_TOKEN, dtype=np.int32)
        # Occurrences, likeliest child or -1, token, and where in the text the first occurrence goes on.
        self._nodes = np.zeros((1024, 4), dtype=np.int32)
        self._nodes[0] = (0, -1, -1, 0)
        self._keys = np.full(2048, -1, dtype=np.int64)
        self._values = np.zeros(2048, dtype=np.int32)
        self._active = np.zeros(max_depth + 1, dtype=np.int32)  # by length, the node of the text's present suffix
        self._sizes = np.array([1, 0, 0, max_depth], dtype=np.int64)  # nodes, tokens, longest repeated suffix, depth

    @property
    def num_nodes(self) -> int:
        """Nodes in use."""
        return int(self._sizes[0])

    @property
    def num_tokens(self) -> int:
        """Tokens of all texts, and one for the end of each."""
        return int(self._sizes[1])

    @property
    def num_bytes(self) -> int:
        """Memory taken."""
        return sum(each.nbytes for each in (self._text, self._nodes, self._keys, self._values))

    def append(self, tokens: NDArray[np.int64]) -> None:
        """Append tokens, int64 (n,), to the present text."""
        for start in range(0, len(tokens), _SLICE):
            part = tokens[start : start + _SLICE]
            self._make_room(len(part))
            append(part, *self._arrays, self._active, self._sizes, self.max_depth)

    def close(self) -> None:
        """End the present text; the next token begins another."""
        self._make_room(1)
        self._sizes[1] += 1
        self._sizes[2] = 0

    def continuation(
        self, tokens: NDArray[np.int64], *, num_tokens: int, factor: float, min_prob: float
    ) -> Continuation:
        """Return how the present text goes on, by the longest suffix of it that occurred before in it.

        Args:
            tokens: int64, the present text or at least its last ``max_depth`` tokens.
            num_tokens: the most tokens to return.
            factor: tokens to return, at most, for each that was matched.
            min_prob: return no token that is reached less likely than this.
        """
        length = min(int(self._sizes[2]), self.max_depth - 1)
        if not length:
            return NOTHING
        limit = min(num_tokens, int(factor * length))
        return self._walk(tokens, length, int(self._active[length]), 0, own=1, limit=limit, min_prob=min_prob)

    def _walk(
        self, tokens: NDArray[np.int64], length: int, node: int, offset: int, *, own: int, limit: int, min_prob: float
    ) -> Continuation:
        if limit < 1:
            return NOTHING
        context = np.empty(length + limit, dtype=np.int64)
        context[:length] = tokens[len(tokens) - length :]
        out, probs = np.empty(limit, dtype=np.int64), np.empty(limit)
        found = draft(context, node, offset, own, *self._arrays, self._sizes, min_prob, out, probs)
        return Continuation(token_ids=out[:found].tolist(), token_probs=probs[:found].tolist(), match_length=length)

    @property
    def _arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        return self._text, self._nodes, self._keys, self._values

    def _make_room(self, num_tokens: int) -> None:
        """Double the arrays until so many further tokens fit, and the nodes that they can make, half of the keys free.

        A token makes at most one node for each length of a suffix.
        """
        while self.num_tokens + num_tokens + 1 > len(self._text):
            self._text = np.concatenate([self._text, np.full_like(self._text, _NO_TOKEN)])
        num_nodes = self.num_nodes + num_tokens * self.max_depth
        while num_nodes > len(self._nodes):
            self._nodes = np.concatenate([self._nodes, np.zeros_like(self._nodes)])
        if 2 * num_nodes > len(self._keys):
            self._rehash(2 * num_nodes)

    def _rehash(self, least: int) -> None:
        size = 1 << (least - 1).bit_length()
        keys, values = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int32)
        place_all(self._keys, self._values, keys, values)
        self._keys, self._values = keys, values


class Reader:
    """Follows a growing text through a trie that does not change meanwhile.

    Args:
        trie: of other texts.
    """

    def __init__(self, trie: SuffixTrie):
        self.trie = trie
        self._num_tokens = trie.num_tokens
        self._places = np.zeros((trie.max_depth, 2), dtype=np.int64)
        self._length = 0

    @property
    def is_stale(self) -> bool:
        """Whether the trie has changed since, so that a new reader is needed."""
        return self.trie.num_tokens != self._num_tokens

    def read(self, tokens: NDArray[np.int64]) -> None:
        """Take note of the next tokens, int64 (n,), of which the last ``max_depth - 1`` matter."""
        recent = tokens[max(0, len(tokens) - self.trie.max_depth + 1) :]
        arrays, sizes = self.trie._arrays, self.trie._sizes
        self._length = follow(recent, *arrays, sizes, self._places, 0 if len(recent) < len(tokens) else self._length)

    def continuation(
        self, tokens: NDArray[np.int64], *, num_tokens: int, factor: float, min_prob: float
    ) -> Continuation:
        """Return how the text goes on, by its longest suffix that is in the trie and followed by anything.

        Args:
            tokens: int64, the text that was read, or at least its last ``max_depth`` tokens.
            num_tokens: as in ``SuffixTrie.continuation``, like the next two.
            factor: see there.
            min_prob: see there.
        """
        for length in range(self._length, 0, -1):
            limit = min(num_tokens, int(factor * length))
            node, offset = self._places[length].tolist()
            found = self.trie._walk(tokens, length, node, offset, own=0, limit=limit, min_prob=min_prob)
            if found.token_ids:
                return found
        return NOTHING
