"""Test doubles for our tests and for those of users: a table as model, a script as drafter, bytes as tokens.

They fit the engine's seams, so that scheduling, acceptance and accounting can be tested without a real model.
"""

import json
import time
from collections.abc import Callable
from collections.abc import Sequence as Many
from typing import Any

import numpy as np
import torch

from batchspec.acceptance import Level
from batchspec.assembly import Limits
from batchspec.blocks import BlockPool, num_blocks_for
from batchspec.counters import Counters
from batchspec.drafting import Drafter, NoDrafter
from batchspec.engine import EngineCore
from batchspec.errors import RequestError
from batchspec.grammar import GrammarCompiler, byte_tokenizer
from batchspec.model.drafting.model import PagedDraftModel
from batchspec.model.drafting.pages import DraftPages
from batchspec.request import ChatPrompt, Prompt, TextPrompt
from batchspec.scheduler import Scheduler
from batchspec.sequence import Sequence
from batchspec.step import Draft, StepPlan
from batchspec.text import Decoder, IncrementalDecoder, text_after

__all__ = ["ByteTokenizer", "ScriptedDrafter", "TableModel", "make_draft_model", "make_engine"]


class ByteTokenizer:
    """Bytes of UTF-8 text as token ids 0 to 255, and 256 as the end of the sequence, a special token."""

    vocab_size = 257
    eos_id = 256

    @property
    def num_vocabulary(self) -> int:
        """Token ids are below this."""
        return self.vocab_size

    def encode(self, prompt: Prompt) -> list[int]:
        """Return the bytes of the text, or of a chat; token ids as they are.

        A chat is a line of JSON if it has tools, then ``role: content`` lines; the last stays open if it is to be
        continued. There is no opening of an answer, and no special token to add.

        Raises:
            RequestError: if there are template variables, which this rendering has none of.
        """
        if isinstance(prompt, TextPrompt):
            return self.encode_plain(prompt.text)
        if isinstance(prompt, ChatPrompt):
            return self.encode_plain(_render_chat(prompt))
        return list(prompt.token_ids)

    def encode_plain(self, text: str) -> list[int]:
        """Return the bytes of a text."""
        return list(text.encode())

    def encode_bad_word(self, word: str) -> list[tuple[int, ...]]:
        """Return the bytes of the word without leading blanks, and of that behind a space."""
        bare = word.lstrip()
        return [tuple(way.encode()) for way in ((bare, " " + bare) if bare else (word,)) if way]

    def decode(self, token_ids: list[int], *, prompt_ids: list[int], skip_special_tokens: bool = True) -> str:
        """Return the text of the bytes; broken UTF-8 becomes replacement characters."""
        return text_after(self._text_of(skip_special_tokens), token_ids, prompt_ids=prompt_ids)

    def decoder(self, *, prompt_ids: list[int], skip_special_tokens: bool = True) -> Decoder:
        """Return what turns bytes into text one by one."""
        return IncrementalDecoder(self._text_of(skip_special_tokens), prompt_ids)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the byte, or the special token's name; nothing for other ids."""
        if token_id == self.eos_id:
            return b"<eos>"
        return bytes([token_id]) if 0 <= token_id < 256 else b""

    def _text_of(self, skip_special_tokens: bool) -> Callable[[list[int]], str]:
        num_shown = 256 if skip_special_tokens else self.vocab_size
        return lambda ids: b"".join(self.token_bytes(i) for i in ids if i < num_shown).decode(errors="replace")


def _render_chat(prompt: ChatPrompt) -> str:
    if prompt.template_kwargs:
        names = ", ".join(prompt.template_kwargs)
        raise RequestError(f"there is no template variable {names}; give none", param="chat_template_kwargs")
    lines = [json.dumps([dict(tool) for tool in prompt.tools])] if prompt.tools else []
    lines += [f"{message['role']}: {message.get('content') or ''}" for message in prompt.messages]
    return "\n".join(lines) + ("" if prompt.continue_final_message else "\n")


class TableModel:
    """A language model that is a table: the logits after a token are that token's row, whatever came before.

    Args:
        table: float (vocabulary, vocabulary).
    """

    def __init__(self, table: torch.Tensor):
        self.table = table
        self.num_forward_passes = 0
        self.num_rows: list[int] = []

    @classmethod
    def random(cls, *, vocab_size: int = ByteTokenizer.vocab_size, seed: int = 0, scale: float = 2.0) -> "TableModel":
        """Return a table of seeded normal logits; a larger scale makes it more certain of itself."""
        generator = torch.Generator().manual_seed(seed)
        return cls(torch.randn(vocab_size, vocab_size, generator=generator) * scale)

    @classmethod
    def counting(cls, *, vocab_size: int = ByteTokenizer.vocab_size) -> "TableModel":
        """Return a table that, taken greedily, answers every token with the next number, 0 after the last."""
        return cls(torch.eye(vocab_size).roll(1, dims=1))

    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary) of the plan's sampled chunks, then those of its prompt rows."""
        self.num_forward_passes += 1
        self.num_rows.append(plan.num_tokens)
        tokens = [chunk.token_ids[len(chunk.token_ids) - chunk.num_rows :] for chunk in plan.sampled]
        tokens += [chunk.token_ids[: chunk.num_prompt_rows] for chunk in plan.scored]
        rows = np.concatenate(tokens) if tokens else np.zeros(0, dtype=np.int64)
        return self.table[torch.from_numpy(rows)]


class ScriptedDrafter(NoDrafter):
    """Proposes what a function of the sequence says.

    Args:
        num_spec_tokens: the most tokens in one draft (k); the script's answer is cut to it.
        script: returns the draft's token ids for a decoding sequence, empty for none.
    """

    def __init__(self, *, num_spec_tokens: int, script: Callable[[Sequence], list[int]]):
        self.num_spec_tokens = num_spec_tokens
        self.script = script

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        """Return the script's drafts, cut to k and to the context."""
        drafts = []
        for sequence in decoding:
            token_ids = self.script(sequence)[: min(self.num_spec_tokens, sequence.num_draft_slots)]
            if token_ids:
                drafts.append(Draft(sequence=sequence, token_ids=token_ids))
        return drafts


def make_draft_model(
    *,
    model: Any | None = None,
    num_vocabulary: int = ByteTokenizer.vocab_size,
    context_length: int = 128,
    num_blocks: int = 128,
    block_size: int = 4,
    max_num_batched_tokens: int = 64,
    prefix_caching: bool = False,
) -> PagedDraftModel:
    """Return a draft model over a fake.

    Args:
        model: by default ``TableModel.random()``.
        num_vocabulary: token ids that it may draft are below this.
        context_length: the most tokens that it can read.
        num_blocks: pool size.
        block_size: tokens in a block.
        max_num_batched_tokens: the most tokens in one forward pass.
        prefix_caching: compute shared beginnings once.
    """
    return PagedDraftModel(
        runner=TableModel.random() if model is None else model,
        pages=DraftPages(BlockPool(num_blocks=num_blocks, block_size=block_size), prefix_caching=prefix_caching),
        num_vocabulary=num_vocabulary,
        context_length=context_length,
        max_num_batched_tokens=max_num_batched_tokens,
    )


def make_engine(
    *,
    model: Any | None = None,
    tokenizer: Any | None = None,
    drafter: Drafter | None = None,
    level: Level = Level.NONE,
    timing: bool = False,
    max_num_seqs: int = 4,
    max_num_batched_tokens: int = 64,
    max_model_len: int = 128,
    num_blocks: int | None = None,
    block_size: int = 4,
    prefix_caching: bool = False,
    eos_ids: frozenset[int] = frozenset({ByteTokenizer.eos_id}),
    clock: Callable[[], float] = time.monotonic,
) -> EngineCore:
    """Return an engine over fakes; every part can be replaced.

    Args:
        model: by default ``TableModel.random()``.
        tokenizer: by default a ``ByteTokenizer``.
        drafter: by default none.
        level: what is recorded.
        timing: whether records carry timing fields.
        max_num_seqs: the most sequences in the batch.
        max_num_batched_tokens: the most tokens in one forward pass.
        max_model_len: the context.
        num_blocks: pool size; by default enough for a full batch.
        block_size: tokens in a block.
        prefix_caching: compute shared beginnings once.
        eos_ids: token ids that end a generation.
        clock: monotonic, in seconds.
    """
    drafter = NoDrafter() if drafter is None else drafter
    enough = max_num_seqs * num_blocks_for(max_model_len, block_size=block_size)
    pool = BlockPool(num_blocks=num_blocks or enough, block_size=block_size)
    return EngineCore(
        runner=TableModel.random() if model is None else model,
        tokenizer=ByteTokenizer() if tokenizer is None else tokenizer,
        scheduler=Scheduler(
            pool=pool,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            prefix_caching=prefix_caching,
            is_ready=drafter.is_ready,
        ),
        drafter=drafter,
        counters=Counters(model_name="table", num_spec_tokens=drafter.num_spec_tokens),
        limits=Limits(
            max_model_len=max_model_len,
            eos_ids=eos_ids,
            level=level,
            num_spec_tokens=drafter.num_spec_tokens,
            timing=timing,
            model_name="table",
        ),
        grammars=GrammarCompiler(byte_tokenizer),
        clock=clock,
    )
