"""A token's logits have the same bits however it came into the batch; that makes the text independent of batching.

Dense models only: a mixture of experts multiplies as many rows at once as happen to choose an expert, so that its
last bits depend on the neighbours.
"""

from typing import Any

import numpy as np
import pytest
import torch

from batchspec.blocks import num_blocks_for
from batchspec.model.cache import KVCache
from batchspec.model.gate import admit
from batchspec.model.runner import ModelRunner
from batchspec.request import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan

from .generating import CPU, prompts_of
from .tiny import build

BLOCK_SIZE = 4
LONG = 40


class Pages:
    """A runner over scattered pages, fed by hand."""

    def __init__(self, module: Any):
        cache = KVCache(num_blocks=64, block_size=BLOCK_SIZE, dtype=torch.float32, device=CPU)
        self.runner = ModelRunner(module=module, cache=cache, device=CPU)
        self.free = np.random.default_rng(1).permutation(64).tolist()

    def sequence(self, tokens: list[int]) -> Sequence:
        sequence = Sequence.start(
            prompt=tokens,
            max_num_tokens=len(tokens),
            context_limit=len(tokens),
            sampling=SamplingParams(),
            stop_ids=frozenset(),
            queued=0.0,
        )
        sequence.blocks = [self.free.pop() for _ in range(num_blocks_for(len(tokens), block_size=BLOCK_SIZE))]
        return sequence

    def forward(self, *spans: tuple[Sequence, int, int, int]) -> list[torch.Tensor]:
        """Compute (sequence, start, end, rows wanted) each; return the last rows' logits of each."""
        chunks = [
            Chunk(
                sequence=sequence,
                start=start,
                token_ids=sequence.tokens[start:end],
                draft=sequence.tokens[end - wanted + 1 : end].tolist(),
                samples=wanted > 0,
            )
            for sequence, start, end, wanted in spans
        ]
        logits = self.runner.forward(StepPlan(chunks=chunks))
        return list(torch.split(logits, [wanted for *_, wanted in spans]))


@pytest.fixture(params=["llama", "gemma3_text", "gpt2", "gemma2", "qwen3"], scope="module")
def module(request: pytest.FixtureRequest) -> Any:
    odd = request.param in ("llama", "gemma3_text")
    sizes = {"hidden_size": 40, "intermediate_size": 53} if odd else {}  # not multiples of lanes
    module = build(request.param, **sizes)
    admit(module, device=CPU)
    return module


@pytest.fixture(scope="module")
def tokens() -> list[int]:
    return prompts_of(LONG)[0]


@pytest.fixture(scope="module")
def one_by_one(module: Any, tokens: list[int]) -> list[torch.Tensor]:
    """Each position's logits (vocabulary,), computed alone."""
    pages = Pages(module)
    sequence = pages.sequence(tokens)
    return [pages.forward((sequence, i, i + 1, 1))[0][0] for i in range(LONG)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 15, 16, 17, 31, LONG])
def test_chunks_of_any_size(module: Any, tokens: list[int], one_by_one: list[torch.Tensor], size: int) -> None:
    pages = Pages(module)
    sequence = pages.sequence(tokens)
    for start in range(0, LONG, size):
        end = min(start + size, LONG)
        logits = pages.forward((sequence, start, end, end - start))[0]
        for position in range(start, end):
            assert torch.equal(logits[position - start], one_by_one[position]), position


@pytest.mark.parametrize("lengths", [(1,), (3, 1, 12), (30, 9), (1,) * 20, (60, 37)])
def test_neighbours(module: Any, tokens: list[int], one_by_one: list[torch.Tensor], lengths: tuple[int, ...]) -> None:
    pages = Pages(module)
    others = [(pages.sequence(other), 0, len(other), 1) for other in prompts_of(*lengths, seed=5)]
    sequence = pages.sequence(tokens)
    half = len(others) // 2
    found = pages.forward(*others[:half], (sequence, 0, LONG, 1), *others[half:])[half]
    assert torch.equal(found[0], one_by_one[-1])


@pytest.mark.parametrize("num_drafted", [1, 3, 8, 20])
def test_draft_rows(module: Any, tokens: list[int], one_by_one: list[torch.Tensor], num_drafted: int) -> None:
    pages = Pages(module)
    start = LONG - 1 - num_drafted
    wrong = tokens[: start + 1] + [(token + 1) % 97 for token in tokens[start + 1 :]]
    sequence = pages.sequence(wrong)
    pages.forward((sequence, 0, start, 1))
    rejected = pages.forward((sequence, start, LONG, 1 + num_drafted))[0]
    assert torch.equal(rejected[0], one_by_one[start])
    sequence.tokens[:] = tokens  # the rejected draft's keys and values are written over
    accepted = pages.forward((sequence, start, LONG, 1 + num_drafted))[0]
    assert torch.equal(accepted, torch.stack(one_by_one[start:]))


def test_recomputed_after_preemption(module: Any, tokens: list[int], one_by_one: list[torch.Tensor]) -> None:
    pages = Pages(module)
    sequence = pages.sequence(tokens)
    for start in range(0, 24, 6):
        pages.forward((sequence, start, start + 6, 1))
    pages.free = sequence.blocks + pages.free
    again = pages.sequence(tokens)
    assert again.blocks != sequence.blocks
    assert torch.equal(pages.forward((again, 0, LONG, 1))[0][0], one_by_one[-1])
