"""One job, the same for every engine: prompts, and how many tokens to generate from each."""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from batchspec.engine import EngineCore
from batchspec.errors import UsageError
from batchspec.params import SamplingParams
from batchspec.prompt import TokenPrompt
from batchspec.request import Endpoint, Request

__all__ = ["Contestant", "Job", "Measured", "Requests", "serve"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is generated: greedily, and past the end of sequence.

    Attributes:
        prompts: token ids of each.
        max_tokens: tokens to generate for each.
        max_num_seqs: sequences that may run at a time.
    """

    prompts: list[list[int]]
    max_tokens: int
    max_num_seqs: int

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence, prompt and output."""
        return max(map(len, self.prompts)) + self.max_tokens

    def shortened(self, max_tokens: int) -> "Job":
        """Return the job with at most so many tokens to generate, for warming up."""
        return replace(self, max_tokens=min(max_tokens, self.max_tokens))

    def requests(self) -> Iterator[Request]:
        """Yield the job's requests as our engine takes them."""
        sampling = SamplingParams(max_tokens=self.max_tokens, temperature=0.0, ignore_eos=True)
        for index, token_ids in enumerate(self.prompts):
            yield Request(
                index=index,
                line=index + 1,
                custom_id=str(index),
                endpoint=Endpoint.COMPLETIONS,
                prompts=(TokenPrompt(token_ids=tuple(token_ids)),),
                sampling=sampling,
            )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one run of a job took.

    Attributes:
        seconds: on the clock, from the first prompt handed over to the last answer complete.
        output_tokens: that were generated.
        cpu_seconds: of processor time over all threads; None where the job ran in another process.
        counts: further whole numbers, by name.
    """

    seconds: float
    output_tokens: int
    cpu_seconds: float | None = None
    counts: dict[str, int] | None = None


class Requests(Protocol):
    """What our engines are given: a job, or a file as it stands."""

    def requests(self) -> Iterator[Request]:
        """Yield the requests as our engine takes them."""


class Contestant(Protocol):
    """An engine that can be given a job again and again."""

    def run(self, job: Job) -> Measured:
        """Do the job and say what it took."""


def serve(core: EngineCore, job: Requests, *, on_record: Callable[[dict[str, Any]], None] = lambda _: None) -> Measured:
    """Run a job through one of our engines; records are made, and handed over instead of written.

    Raises:
        UsageError: a prompt could not be served.
    """
    gc.collect()
    started, cpu_started = time.perf_counter(), time.process_time()
    for record in core.run(job.requests()):
        if record["error"] is not None:
            raise UsageError(f"a prompt of the benchmark could not be served: {record['error']['message']}")
        on_record(record)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    return Measured(
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        output_tokens=core.progress.output_tokens,
        counts={
            "num_steps": core.progress.num_steps,
            "num_draft_tokens": core.progress.num_draft_tokens,
            "num_accepted_draft_tokens": core.progress.num_accepted_draft_tokens,
        },
    )
