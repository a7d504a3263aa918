"""How fast n-grams are replayed: ``python -m batchspec.replay.speed``.

Responses are made up: 64 of them, about 100 tokens of prompt and 400 of output each, of which a third repeats what
stood before, come again and again. With each line is done what ``batchspec replay`` does, for all draft lengths, on one
core, whose own seconds are counted, however busy the machine is; then the same without reading JSON.
"""

import argparse
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import cycle
from typing import TypeVar

import numpy as np
import orjson

from batchspec.drafting import SpeculativeConfig
from batchspec.replay.census import Census
from batchspec.replay.passes import LookupPass, ngrams_of
from batchspec.replay.reading import Reader
from batchspec.replay.recorded import Recorded
from batchspec.replay.tallies import Tallies

__all__ = ["main"]

_NUM_RESPONSES = 64
_VOCABULARY = 32_000

_Item = TypeVar("_Item")


def main() -> None:
    """Measure and print tokens per second, of prompts and outputs together, and the most memory that it took."""
    parser = argparse.ArgumentParser(prog="python -m batchspec.replay.speed", description="Speed of replaying n-grams.")
    parser.add_argument("--tokens", type=int, default=50_000_000, help="of prompts and outputs; default: %(default)s")
    parser.add_argument("--lengths", type=int, default=8, help="draft lengths from 1 to this; default: %(default)s")
    options = parser.parse_args()
    lines = _lines()
    recorded = list(_recorded(enumerate(lines, start=1)))
    num_tokens = sum(len(one.prompt) + len(one.output) for one in recorded)
    num_lines = max(1, options.tokens * len(lines) // num_tokens)
    _replay(recorded, lengths=options.lengths)  # compiles
    for name, outputs in {
        "with JSON": _recorded(_repeated(lines, num_lines)),
        "without": (one for _, one in _repeated(recorded, num_lines)),
    }.items():
        started = time.process_time()
        num_done, num_outputs = _replay(outputs, lengths=options.lengths)
        seconds = time.process_time() - started
        print(
            f"{name}: {num_done:,} tokens in {seconds:.1f} s of one core: {num_done / seconds:,.0f} tokens/s, "
            f"{num_outputs / seconds:,.0f} output tokens/s, k 1 to {options.lengths}",
            flush=True,
        )
    unit = 1 if sys.platform == "darwin" else 1024
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20:,.0f} MiB")


def _lines() -> list[bytes]:
    """Return responses as lines of JSON."""
    generator = np.random.default_rng(0)
    lines = []
    for index in range(_NUM_RESPONSES):
        tokens: list[int] = []
        length = int(generator.integers(250, 750))
        while len(tokens) < length:
            size = int(generator.integers(4, 24))
            if len(tokens) > size and generator.random() < 1 / 3:
                start = int(generator.integers(len(tokens) - size))
                tokens += tokens[start : start + size]
            else:
                tokens += generator.zipf(1.3, size=size).clip(max=_VOCABULARY - 1).tolist()
        choice = {"index": 0, "text": "", "token_ids": tokens[length // 5 :], "prompt_token_ids": tokens[: length // 5]}
        body = {"object": "text_completion", "choices": [choice], "metrics": None}
        response = {"status_code": 200, "body": body}
        lines.append(orjson.dumps({"id": f"batch_req_{index:08d}", "custom_id": f"{index}", "response": response}))
    return lines


def _repeated(items: list[_Item], number: int) -> Iterator[tuple[int, _Item]]:
    return zip(range(1, number + 1), cycle(items), strict=False)


def _recorded(lines: Iterable[tuple[int, bytes]]) -> Iterator[Recorded]:
    return Census().pass_on(Reader().read(lines), path="")


def _replay(outputs: Iterable[Recorded], *, lengths: int) -> tuple[int, int]:
    """Replay every output; return the number of tokens and of output tokens."""
    ks = range(1, lengths + 1)
    find = partial(ngrams_of, config=SpeculativeConfig(), most=lengths)
    lookup = LookupPass(find, ks=ks, first=0, tallies=Tallies(ks), schedules=(), max_model_len=None)
    num_prompt_tokens = num_output_tokens = 0
    for one in outputs:
        lookup.take(one)
        num_prompt_tokens += len(one.prompt)
        num_output_tokens += len(one.output)
    return num_prompt_tokens + num_output_tokens, num_output_tokens


if __name__ == "__main__":
    main()
