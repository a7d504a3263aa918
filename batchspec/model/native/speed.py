"""What it brings to run layers in one go: ``python -m batchspec.model.native.speed MODEL``.

Decoding steps up to the language head, one token of each sequence, in turn the one way and the other; the head is left
out.
"""

import argparse
import statistics
import sys
import time

import torch

from batchspec.blocks import num_blocks_for
from batchspec.errors import BatchspecError
from batchspec.model.cache import KVCache
from batchspec.model.load import LoadedModel, load_model
from batchspec.model.locate import EMBEDDED_TARGET
from batchspec.model.native.decoder import Decoder
from batchspec.model.runner import ModelRunner, pack
from batchspec.params import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan

__all__ = ["main"]

_BLOCK_SIZE = 16


def main() -> None:
    """Measure and print milliseconds a step, for several numbers of sequences."""
    parser = argparse.ArgumentParser(prog="python -m batchspec.model.native.speed", description="Speed of layers.")
    parser.add_argument("model", nargs="?", default=str(EMBEDDED_TARGET), help="a directory; default: the embedded one")
    parser.add_argument("--dtype", default="auto", help="as for batchspec run; default: %(default)s")
    parser.add_argument("--context", type=int, default=128, help="tokens of each sequence; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=30, help="medians of so many; default: %(default)s")
    options = parser.parse_args()
    try:
        loaded = load_model(options.model, device="cpu", dtype=options.dtype)
    except BatchspecError as error:
        sys.exit(str(error))
    for num_rows in (1, 4, 16, 64):
        print(_line(loaded, num_rows=num_rows, context=options.context, rounds=options.rounds), flush=True)


@torch.inference_mode()
def _line(loaded: LoadedModel, *, num_rows: int, context: int, rounds: int) -> str:
    network = loaded.network
    if not isinstance(network, Decoder) or network.together is None:
        return f"{num_rows} sequences: the layers of {loaded.name} cannot be run in one go"
    per_sequence = num_blocks_for(context, block_size=_BLOCK_SIZE)
    cache = KVCache(
        num_blocks=num_rows * per_sequence, block_size=_BLOCK_SIZE, dtype=loaded.kv_dtype, device=loaded.device
    )
    sequences = [_sequence(context, first_block=index * per_sequence) for index in range(num_rows)]
    runner = ModelRunner(network=network, cache=cache, device=loaded.device)
    for sequence in sequences:
        runner.forward(StepPlan(chunks=[_chunk(sequence, 0, context - 1)]))
    plan = StepPlan(chunks=[_chunk(sequence, context - 1, context) for sequence in sequences])
    token_ids, positions, rows = pack(plan, block_size=_BLOCK_SIZE, row_counts=network.row_counts)
    ways, seconds = {"together": network.together, "apart": None}, {"together": [0.0], "apart": [0.0]}
    for way in [*ways] * (rounds + 1):
        network.together = ways[way]
        started = time.perf_counter()
        network.states(token_ids, positions, rows=rows, cache=cache, wanted=torch.arange(num_rows))
        seconds[way].append(time.perf_counter() - started)
    network.together = ways["together"]
    together, apart = (1e3 * statistics.median(seconds[way][2:]) for way in ways)  # the first one compiles
    return f"{num_rows} sequences: {together:.2f} ms in one go, {apart:.2f} ms one by one, {apart / together:.2f} times"


def _sequence(context: int, *, first_block: int) -> Sequence:
    sequence = Sequence.start(
        prompt=[(7 * place + first_block) % 256 for place in range(context)],
        max_num_tokens=context,
        context_limit=context,
        sampling=SamplingParams(),
        stop_ids=frozenset(),
        queued=0.0,
    )
    sequence.blocks = list(range(first_block, first_block + num_blocks_for(context, block_size=_BLOCK_SIZE)))
    return sequence


def _chunk(sequence: Sequence, start: int, end: int) -> Chunk:
    return Chunk(sequence=sequence, start=start, token_ids=sequence.tokens[start:end], draft=[], samples=True)


if __name__ == "__main__":
    main()
