"""The masks of one step: for every logit row of every sequence with a grammar, the tokens allowed there."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from batchspec.grammar.state import LLGrammar
from batchspec.step import StepPlan, TokenMasks

if TYPE_CHECKING:
    from llguidance import LLExecutor

__all__ = ["MaskedChunk", "fill", "masked_chunks"]


@dataclass(frozen=True, kw_only=True)
class MaskedChunk:
    """A sampled chunk whose sequence has a grammar.

    Attributes:
        grammar: of the sequence; stands behind the newest emitted token.
        draft: the drafted token ids.
        row: number of the chunk's first logit row.
    """

    grammar: LLGrammar
    draft: list[int]
    row: int


def masked_chunks(plan: StepPlan) -> list[MaskedChunk]:
    """Return the plan's sampled chunks that need masks."""
    chunks, row = [], 0
    for chunk in plan.sampled:
        if isinstance(chunk.sequence.grammar, LLGrammar):
            chunks.append(MaskedChunk(grammar=chunk.sequence.grammar, draft=chunk.draft, row=row))
        row += chunk.num_rows
    return chunks


def fill(executor: "LLExecutor", chunks: list[MaskedChunk]) -> TokenMasks:
    """Return the masks of at least one chunk; the grammars stay where they are.

    A row behind a rejected draft token forbids everything: no target can match the rejected token, so the row is never
    used, and if it were, the sequence would fail instead of leaving its grammar. A row behind an end-of-sequence token
    allows only such tokens, as the next step's mask would.
    """
    from llguidance.numpy import fill_next_token_bitmask_par as fill_first
    from llguidance.numpy import fill_next_token_bitmask_par_with_draft_tokens as fill_with_drafts

    rows = np.concatenate([np.arange(chunk.row, chunk.row + 1 + len(chunk.draft)) for chunk in chunks])
    bits = np.zeros((len(rows), (chunks[0].grammar.num_vocabulary + 31) // 32), dtype=np.int32)
    starts = np.cumsum([0, *(1 + len(chunk.draft) for chunk in chunks)]).tolist()
    places = [(chunk, start) for chunk, start in zip(chunks, starts, strict=False) if _is_open(chunk)]
    drafted = [(chunk.grammar.matcher, start, draft) for chunk, start in places if (draft := _before_eos(chunk))]
    if drafted:
        fill_with_drafts(executor, drafted, bits)
    plain = [(chunk.grammar.matcher, start) for chunk, start in places if not _before_eos(chunk)]
    if plain:
        fill_first(executor, plain, bits)
    for chunk, start in zip(chunks, starts, strict=False):
        own = bits[start : start + 1 + len(chunk.draft)]
        if chunk.grammar.matcher.is_error():
            _fill_again(chunk, own)
        _fill_behind_eos(chunk, own)
    return TokenMasks(rows=rows, bits=bits)


def _is_open(chunk: MaskedChunk) -> bool:
    return not chunk.grammar.has_ended and not chunk.grammar.has_failed


def _before_eos(chunk: MaskedChunk) -> list[int]:
    """Return the draft up to the first token that ends the sequence or is outside the vocabulary."""
    grammar, draft = chunk.grammar, chunk.draft
    ends = (i for i, token in enumerate(draft) if token in grammar.eos_ids or not 0 <= token < grammar.num_vocabulary)
    return draft[: next(ends, None)]


def _fill_again(chunk: MaskedChunk, bits: NDArray[np.int32]) -> None:
    """Fill a chunk's rows (1 + draft, words) one by one, up to that at which a fresh matcher meets an error, too."""
    from llguidance.numpy import fill_next_token_bitmask

    bits[:] = 0
    chunk.grammar.rebuild()
    matcher, draft = chunk.grammar.matcher.deep_copy(), _before_eos(chunk)
    for row in range(1 + len(draft)):
        fill_next_token_bitmask(matcher, bits, row)
        if matcher.is_error():
            matcher = chunk.grammar.fresh(draft[:row])
            fill_next_token_bitmask(matcher, bits, row)
        if matcher.is_error():
            bits[row] = 0
            return
        matcher.consume_tokens(draft[row : row + 1])


def _fill_behind_eos(chunk: MaskedChunk, bits: NDArray[np.int32]) -> None:
    """Fill the rows of a chunk at which the sequence would have ended."""
    eos_ids, num_before = chunk.grammar.eos_ids, len(_before_eos(chunk))
    if chunk.grammar.has_ended:
        _allow_only(eos_ids, bits[0])
    for row, token in enumerate(chunk.draft[num_before:], start=num_before):
        if token not in eos_ids or not bits[row, token // 32] >> (token % 32) & 1:
            return
        _allow_only(eos_ids, bits[row + 1])


def _allow_only(token_ids: Iterable[int], bits: NDArray[np.int32]) -> None:
    """Overwrite one row of bits (words,)."""
    words = np.zeros(len(bits), dtype=np.uint32)
    for token in token_ids:
        words[token // 32] |= np.uint32(1 << token % 32)
    bits[:] = words.view(np.int32)
