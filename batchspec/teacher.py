"""What a draft model would choose in every place of a text that is there: one pass over it, fed with the text itself.

A draft counts as far as it agrees with the text, and as long as it agrees, the draft model has read nothing but the
text. So its choice behind every beginning of the text says how far each draft would have come, whatever the draft
length. It chooses as in a run (``sampling.decide``): with the request's parameters and the target's noise.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.blocks import BlockPool, num_blocks_for
from batchspec.errors import UsageError
from batchspec.model.cache import KVCache
from batchspec.model.device.opening import page_size
from batchspec.model.load import load_model
from batchspec.model.locate import EMBEDDED_DRAFT
from batchspec.model.runner import ModelRunner
from batchspec.params import SamplingParams
from batchspec.sampling import decide
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan

__all__ = ["NO_CHOICE", "Teacher", "open_teacher"]

NO_CHOICE = -1
_MOST_ROWS = 128  # with logits in one pass, since those of each take vocabulary x 4 bytes
_MOST_TOKENS = 512  # of a prompt in one pass


class _Runner(Protocol):
    """What is asked of the network, as the engine asks the target's."""

    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary) of the plan's sampled chunks."""


class Teacher:
    """Reads texts one after another, over pages of its own.

    Args:
        runner: computes the logits of the draft model.
        pool: its pages, enough for ``context_length`` tokens.
        num_vocabulary: its token ids are below this.
        context_length: the most tokens that it can read.
        eos_ids: token ids that end a generation.
        encode_bad_word: token ids of a text that may not be generated.
    """

    def __init__(
        self,
        *,
        runner: _Runner,
        pool: BlockPool,
        num_vocabulary: int,
        context_length: int,
        eos_ids: frozenset[int],
        encode_bad_word: Callable[[str], list[tuple[int, ...]]],
    ):
        self.context_length = context_length
        self._runner = runner
        self._pool = pool
        self._num_vocabulary = num_vocabulary
        self._eos_ids = eos_ids
        self._encode_bad_word = encode_bad_word

    def choices(
        self, prompt: NDArray[np.int64], text: NDArray[np.int64], *, sampling: SamplingParams, sample_index: int
    ) -> NDArray[np.int64]:
        """Return what the draft model chooses in the place of each token of a text, int64 (len(text),).

        ``NO_CHOICE`` stands for the first token, behind the context's end, and where the logits choose none.

        Args:
            prompt: int64 (n,), before the text.
            text: int64 (m,).
            sampling: the request's parameters.
            sample_index: which of the request's samples it is.

        Raises:
            UsageError: a token is not in the vocabulary.
        """
        tokens = np.concatenate([prompt, text])
        if len(tokens) and tokens.max() >= self._num_vocabulary:
            raise UsageError(
                f"the draft model has {self._num_vocabulary} tokens, but the log holds token {tokens.max()}: give a "
                "draft model of the target's vocabulary."
            )
        sequence = self._sequence(tokens, len(prompt), sampling, sample_index=sample_index)
        found = np.full(len(text), NO_CHOICE, dtype=np.int64)
        try:
            for chunk in self._chunks(sequence, tokens):
                self._pool.grow(sequence.blocks, num_tokens=chunk.start + len(chunk.token_ids))
                logits = self._runner.forward(StepPlan(chunks=[chunk]))
                if chunk.samples:
                    first = sequence.num_tokens - len(prompt)
                    chosen = self._chosen(chunk, logits)[: len(text) - first]
                    found[first : first + len(chosen)] = chosen
        finally:
            self._pool.shrink(sequence.blocks, num_tokens=0)
        return found

    def _sequence(
        self, tokens: NDArray[np.int64], num_prompt_tokens: int, sampling: SamplingParams, *, sample_index: int
    ) -> Sequence:
        eos_ids = frozenset() if sampling.ignore_eos else self._eos_ids
        sequence = Sequence.start(
            prompt=tokens[:num_prompt_tokens].tolist(),
            max_num_tokens=len(tokens) + 1,
            context_limit=self.context_length,
            sampling=sampling,
            stop_ids=frozenset(sampling.stop_token_ids) | eos_ids,
            queued=0.0,
            sample_index=sample_index,
            bad_words=tuple(ids for word in sampling.bad_words for ids in self._encode_bad_word(word)),
        )
        sequence.tokens[: len(tokens)] = tokens
        return sequence

    def _chunks(self, sequence: Sequence, tokens: NDArray[np.int64]) -> Iterator[Chunk]:
        """Yield the passes: the prompt, then the text in pieces, each as a draft behind its first token.

        The last token of all is not computed, since nothing follows it.
        """
        last = min(len(tokens) - 1, self.context_length)
        prompt_end = min(sequence.num_prompt_tokens, last)
        for start in range(0, prompt_end, _MOST_TOKENS):
            end = min(start + _MOST_TOKENS, prompt_end)
            yield Chunk(sequence=sequence, start=start, token_ids=tokens[start:end], draft=[], samples=False)
        for start in range(prompt_end, last, _MOST_ROWS):
            end = min(start + _MOST_ROWS, last)
            sequence.num_computed_tokens, sequence.num_tokens = start, start + 1
            draft = tokens[start + 1 : end].tolist()
            yield Chunk(sequence=sequence, start=start, token_ids=tokens[start:end], draft=draft, samples=True)

    def _chosen(self, chunk: Chunk, logits: torch.Tensor) -> NDArray[np.int64]:
        """Return the token behind each of the chunk's rows."""
        choices = decide([chunk], logits[:, : self._num_vocabulary].contiguous())
        target_ids, has_target = choices.target_ids.cpu().numpy(), choices.has_target.cpu().numpy()
        return np.where(has_target, target_ids, NO_CHOICE)


def open_teacher(model: str | None) -> Teacher:
    """Load a draft model.

    Args:
        model: directory, hub id or GGUF file; None for the embedded draft model.

    Raises:
        ModelError: it cannot be loaded or run.
    """
    loaded = load_model(Path(EMBEDDED_DRAFT) if model is None else model, device="auto", generation_config="openai")
    block_size = page_size(loaded.device, loaded.dtype)
    num_blocks = num_blocks_for(loaded.context_length, block_size=block_size)
    cache = KVCache(
        num_blocks=num_blocks,
        block_size=block_size,
        dtype=loaded.kv_dtype,
        device=loaded.device,
    )
    return Teacher(
        runner=ModelRunner(network=loaded.network, cache=cache, device=loaded.device),
        pool=BlockPool(num_blocks=num_blocks, block_size=block_size),
        num_vocabulary=loaded.tokenizer.num_vocabulary,
        context_length=loaded.context_length,
        eos_ids=loaded.eos_ids,
        encode_bad_word=loaded.tokenizer.encode_bad_word,
    )
