"""How long it takes to choose the tokens of a step: ``python -m batchspec.sampling.speed``.

Logits are made up: normal, with a standard deviation of 4, as those of a small language model are. What forward passes
take is not in it.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from batchspec.params import SamplingParams
from batchspec.sampling.choice import decide
from batchspec.sequence import Sequence
from batchspec.step import Chunk

__all__ = ["main"]

_SPREAD = 4.0
_KINDS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "temperature 1": {"temperature": 1.0},
    "temperature 1, top-p 0.95": {"temperature": 1.0, "top_p": 0.95},
    "temperature 1, top-k 64, top-p 0.95": {"temperature": 1.0, "top_k": 64, "top_p": 0.95},
    "temperature 1, min-p 0.05": {"temperature": 1.0, "min_p": 0.05},
    "greedy, repetition penalty 1.1": {"temperature": 0.0, "repetition_penalty": 1.1},
    "greedy, 5 log probabilities": {"temperature": 0.0, "logprobs": 5},
}


def main() -> None:
    """Measure and print milliseconds a step, for common parameters."""
    parser = argparse.ArgumentParser(prog="python -m batchspec.sampling.speed", description="Speed of choosing tokens.")
    parser.add_argument("--rows", type=int, default=64, help="rows of a step; default: %(default)s")
    parser.add_argument("--vocabulary", type=int, default=262_144, help="tokens; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="medians of so many; default: %(default)s")
    options = parser.parse_args()
    logits = torch.randn(options.rows, options.vocabulary, generator=torch.Generator().manual_seed(0)) * _SPREAD
    for name, params in _KINDS.items():
        chunks = [_chunk(SamplingParams(seed=row, **params)) for row in range(options.rows)]
        seconds = list(_timed(chunks, logits, rounds=options.rounds))
        print(f"{name}: {statistics.median(seconds) * 1e3:.1f} ms for {options.rows} rows", flush=True)


@torch.inference_mode()
def _timed(chunks: list[Chunk], logits: torch.Tensor, *, rounds: int) -> Iterator[float]:
    decide(chunks, logits)  # compiles
    for _ in range(rounds):
        started = time.perf_counter()
        decide(chunks, logits)
        yield time.perf_counter() - started


def _chunk(sampling: SamplingParams) -> Chunk:
    """Return the next token of a sequence of a few tokens."""
    prompt = list(range(10))
    sequence = Sequence.start(
        prompt=prompt, max_num_tokens=64, context_limit=64, sampling=sampling, stop_ids=frozenset(), queued=0.0
    )
    return Chunk(sequence=sequence, start=9, token_ids=np.array(prompt[-1:]), draft=[], samples=True)


if __name__ == "__main__":
    main()
