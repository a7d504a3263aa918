"""Bodies in, bodies out: requests as users write them, served by a model whose logits depend on the context."""

from typing import Any

import torch

from batchspec.drafting import Drafter
from batchspec.engine import EngineCore
from batchspec.files import Columns, RowDefaults
from batchspec.files.rows import parse_row
from batchspec.request import Endpoint, Request
from batchspec.step import StepPlan
from batchspec.testing import ByteTokenizer, make_engine

__all__ = ["ContextModel", "engine_of", "parsed", "serve_one"]

VOCAB = ByteTokenizer.vocab_size
LIKELY = b"abcd \n" + "é😀".encode()


class ContextModel:
    """A model whose logits after a context are one of ``num_states`` rows, chosen by the last two tokens.

    Letters, the bytes of two longer characters and the end of the sequence are likelier than the rest, so that texts
    have stops, repetitions and characters of several bytes in them.

    Args:
        seed: of the rows.
        num_states: number of rows.
        closing: make what ends strings, arrays and objects likelier still, so that JSON comes to an end.
    """

    def __init__(self, *, seed: int = 0, num_states: int = 61, closing: bool = False):
        generator = torch.Generator().manual_seed(seed)
        self.table = torch.randn(num_states, VOCAB, generator=generator)
        self.table[:, list(LIKELY)] += 4.0
        self.table[:, ByteTokenizer.eos_id] += 2.0
        if closing:
            self.table[:, [*b'"]},:', ByteTokenizer.eos_id]] += 6.0
            self.table[:, list(b" \n")] -= 6.0

    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary) of the plan's sampled chunks, then those of its prompt rows."""
        states = []
        for chunk in plan.sampled:
            states += [
                self._state(chunk, i) for i in range(len(chunk.token_ids) - chunk.num_rows, len(chunk.token_ids))
            ]
        for chunk in plan.scored:
            states += [self._state(chunk, i) for i in range(chunk.num_prompt_rows)]
        return self.table[states]

    def _state(self, chunk: Any, i: int) -> int:
        last = int(chunk.token_ids[i])
        before = int(chunk.token_ids[i - 1]) if i else int(chunk.sequence.tokens[chunk.start - 1]) if chunk.start else 0
        return (31 * before + 7 * last) % len(self.table)


def parsed(body: dict[str, Any], *, endpoint: Endpoint = Endpoint.COMPLETIONS, index: int = 0) -> Request:
    """Return the request that a batch line with this body makes."""
    row = {"custom_id": f"r{index}", "method": "POST", "url": str(endpoint), "body": body}
    return parse_row(row, index=index, line=index + 1, columns=Columns(), defaults=RowDefaults())


def engine_of(drafter: Drafter | None = None, **kwargs: Any) -> EngineCore:
    """Return an engine over the context model."""
    return make_engine(**{"model": ContextModel(), "drafter": drafter, "max_model_len": 256} | kwargs)


def serve_one(engine: EngineCore, request: Request) -> dict[str, Any]:
    """Return the request's record; nothing is left in the engine."""
    (record,) = engine.run([request])
    assert engine.scheduler.num_unfinished == 0
    assert engine.scheduler.pool.num_free == engine.scheduler.pool.num_blocks
    return record
