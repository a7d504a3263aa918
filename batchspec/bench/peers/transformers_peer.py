"""transformers in this process: ``generate`` in batches, with prompt lookup one by one, and ``generate_batch``."""

import gc
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers import logging as transformers_logging
from transformers.generation.configuration_utils import ContinuousBatchingConfig

from batchspec.bench.clock import synchronise
from batchspec.bench.job import Contestant, Job, Measured
from batchspec.errors import UsageError
from batchspec.model.locate import locate

__all__ = ["TransformersPeer"]

_PAGE = 32  # tokens
_BATCH_TOKENS = 256  # of a generate_batch step; the masks it builds on a CPU grow with it

Generate = Callable[[Job], int]


class TransformersPeer:
    """The model once more, loaded as transformers loads it.

    Args:
        model: directory, hub id or GGUF file.
        dtype: name of the weights' dtype.
        device: where it runs.
        num_threads: that it may use.
        num_spec_tokens: of a prompt lookup; 0 for no prompt lookup.

    Raises:
        UsageError: transformers cannot load it.
    """

    def __init__(self, model: str, *, dtype: str, device: torch.device, num_threads: int, num_spec_tokens: int):
        source = locate(model)
        try:
            with _quiet():
                loaded = AutoModelForCausalLM.from_pretrained(
                    source.path, dtype=getattr(torch, dtype), **source.options
                )
        except Exception as error:  # whatever the family's own code raises
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise UsageError(f"--peer transformers: the model cannot be loaded there: {reason}") from error
        self.module: Any = loaded.to(device).eval()
        self.module.generation_config = GenerationConfig(pad_token_id=0)
        self.device = device
        self.num_threads = num_threads
        self.num_spec_tokens = num_spec_tokens

    def contestants(self, max_num_seqs: int) -> Mapping[str, Contestant]:
        """Return its ways of generating; prompt lookup is for one sequence at a time."""
        ways: dict[str, Generate] = {"generate": self._generate, "generate_batch": self._generate_batch}
        if max_num_seqs == 1 and self.num_spec_tokens:
            ways["generate, prompt lookup"] = partial(
                self._generate, prompt_lookup_num_tokens=self.num_spec_tokens, max_matching_ngram_size=3
            )
        return {f"transformers {name}": _Way(self, way) for name, way in ways.items()}

    def _generate(self, job: Job, **options: Any) -> int:
        """Generate batch after batch, each padded on the left; return the number of tokens."""
        num_tokens = 0
        for first in range(0, len(job.prompts), job.max_num_seqs):
            batch = job.prompts[first : first + job.max_num_seqs]
            width = max(map(len, batch))
            ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in batch], device=self.device)
            mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in batch])
            output = self.module.generate(
                input_ids=ids, attention_mask=mask.to(self.device), generation_config=_config(job, **options)
            )
            num_tokens += output[:, width:].numel()
        return num_tokens

    def _generate_batch(self, job: Job) -> int:
        """Generate by continuous batching, with as many pages as a full batch needs; return the number of tokens."""
        pages = -(-(max(map(len, job.prompts)) + job.max_tokens) // _PAGE)
        config = ContinuousBatchingConfig(
            page_size=_PAGE,
            num_blocks=job.max_num_seqs * pages + 1,
            max_requests_per_batch=job.max_num_seqs,
            max_batch_tokens=max(_BATCH_TOKENS, job.max_num_seqs),
        )
        outputs = self.module.generate_batch(
            job.prompts, generation_config=_config(job), continuous_batching_config=config, warmup=False
        )
        return sum(len(output.generated_tokens) for output in outputs.values())


class _Way:
    """One way of generating, timed."""

    def __init__(self, peer: TransformersPeer, generate: Generate):
        self.peer = peer
        self.generate = generate

    def run(self, job: Job) -> Measured:
        """Do the job with the peer's own number of threads."""
        gc.collect()
        before = torch.get_num_threads()
        torch.set_num_threads(self.peer.num_threads)
        try:
            with _quiet(), torch.inference_mode():
                started, cpu_started = time.perf_counter(), time.process_time()
                num_tokens = self.generate(job)
                synchronise(self.peer.device)
                seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        finally:
            torch.set_num_threads(before)
        return Measured(seconds=seconds, cpu_seconds=cpu_seconds, output_tokens=num_tokens)


def _config(job: Job, **options: Any) -> GenerationConfig:
    return GenerationConfig(
        max_new_tokens=job.max_tokens, do_sample=False, eos_token_id=None, pad_token_id=0, **options
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep remarks and progress bars away from the terminal; those of ``generate_batch`` heed no verbosity."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    verbosity = transformers_logging.get_verbosity()
    has_bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(transformers_logging.CRITICAL)
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.disable(disabled)
        transformers_logging.set_verbosity(verbosity)
        if has_bars:
            transformers_logging.enable_progress_bar()
