"""A runner fed by hand, chunk by chunk."""

import numpy as np
import torch

from batchspec.blocks import num_blocks_for
from batchspec.model.cache import KVCache
from batchspec.model.network import Network
from batchspec.model.runner import ModelRunner
from batchspec.request import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan

from .generating import CPU

BLOCK_SIZE = 4


class Pages:
    """A runner over scattered pages, fed by hand.

    Args:
        network: what it runs.
        in_strips: whether pages are the CPU kernel's, or those of other devices.
        dtype: of the pages.
    """

    def __init__(self, network: Network, *, in_strips: bool = True, dtype: torch.dtype = torch.float32):
        cache = KVCache(num_blocks=64, block_size=BLOCK_SIZE, dtype=dtype, device=CPU, in_strips=in_strips)
        self.runner = ModelRunner(network=network, cache=cache, device=CPU)
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
        return list(torch.split(logits.clone(), [wanted for *_, wanted in spans]))
