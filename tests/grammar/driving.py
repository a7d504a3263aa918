"""Grammars driven without a model: plans made by hand, masks as sets, outputs chosen at random."""

import random
from collections.abc import Sequence as Many

from batchspec.grammar import GrammarCompiler, LLGrammar, byte_tokenizer
from batchspec.params import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan, TokenMasks
from tests.core.sequences import sampled_chunk

__all__ = ["EOS", "Writer", "accepts", "allowed", "compiler_over_bytes", "masks_of", "rows_of", "sequence_with"]

EOS = 256


def compiler_over_bytes() -> GrammarCompiler:
    return GrammarCompiler(byte_tokenizer)


def accepts(grammar: LLGrammar, text: str) -> bool:
    """Whether the whole text, followed by the end, is in the grammar."""
    token_ids = [*text.encode(), EOS]
    return grammar.num_valid(token_ids) == len(token_ids)


def sequence_with(grammar: LLGrammar | None, *, prompt: Many[int] = (0,), max_tokens: int = 1000) -> Sequence:
    return Sequence.start(
        prompt=list(prompt),
        max_num_tokens=len(prompt) + max_tokens,
        context_limit=len(prompt) + max_tokens + 16,
        sampling=SamplingParams(),
        stop_ids=frozenset({EOS}),
        queued=0.0,
        grammar=grammar,
    )


def masks_of(compiler: GrammarCompiler, *chunks: Chunk) -> TokenMasks:
    masks = compiler.masks(StepPlan(chunks=list(chunks)))()
    assert masks is not None
    return masks


def rows_of(compiler: GrammarCompiler, grammar: LLGrammar, draft: Many[int] = ()) -> list[set[int]]:
    """The tokens allowed in each of the 1 + draft rows behind where the grammar stands."""
    masks = masks_of(compiler, sampled_chunk(sequence_with(grammar), list(draft)))
    assert masks.rows.tolist() == list(range(1 + len(draft)))
    return [allowed(masks, row, grammar.num_vocabulary) for row in range(1 + len(draft))]


def allowed(masks: TokenMasks, index: int, num_vocabulary: int) -> set[int]:
    bits = masks.bits[index].tolist()
    return {token for token in range(num_vocabulary) if bits[token // 32] >> (token % 32) & 1}


class Writer:
    """Chooses tokens that a mask allows, at random, with a bias to what closes texts, arrays and objects.

    Args:
        tokens: the bytes of every token.
        eos_ids: the tokens that end.
        seed: of the choices.
    """

    def __init__(self, tokens: Many[bytes], *, eos_ids: frozenset[int], seed: int):
        self.tokens = tokens
        self.eos_ids = eos_ids
        self.random = random.Random(seed)

    def choose(self, tokens: set[int], *, wish: int | None = None) -> int:
        """One of the tokens; the wish half of the time that it is among them."""
        if wish in tokens and self.random.random() < 0.5:
            return wish
        ending = sorted(token for token in tokens if self._ends(token))
        if ending and self.random.random() < 0.5:
            return self.random.choice(ending)
        usual = sorted(token for token in tokens if self.tokens[token].strip()) or sorted(tokens)
        return self.random.choice(usual if self.random.random() < 0.95 else sorted(tokens))

    def draft(self, grammar: LLGrammar, earlier: list[int], k: int) -> list[int]:
        """Up to k tokens: forced ones, a piece of an earlier output, or noise."""
        kind = self.random.randrange(3)
        if kind == 0:
            return grammar.forced()[:k]
        if kind == 1 and earlier:
            start = self.random.randrange(len(earlier))
            return earlier[start : start + k]
        return [self.random.randrange(len(self.tokens)) for _ in range(k)]

    def _ends(self, token: int) -> bool:
        return token in self.eos_ids or self.tokens[token][:1] in (b'"', b"}", b"]")
