"""What prefix caching saves: many requests behind one header, with it and without it."""

from collections.abc import Callable
from itertools import cycle, islice
from typing import Any

from batchspec.bench.job import Job, serve
from batchspec.bench.subject import Subject
from batchspec.engine import EngineCore
from batchspec.errors import UsageError
from batchspec.step import StepPlan

__all__ = ["measure_prefix"]

_OWN_TOKENS = 24
_MAX_TOKENS = 16


def measure_prefix(
    subject: Subject,
    *,
    say: Callable[[str], None],
    num_requests: int,
    header_tokens: int,
) -> dict[str, Any]:
    """Count the prompt tokens that forward passes compute, and compare the texts.

    Raises:
        UsageError: the model's context does not hold the header and an answer.
    """
    job = _job(subject, num_requests=num_requests, header_tokens=header_tokens)
    found: dict[bool, dict[str, Any]] = {}
    texts: dict[bool, list[str]] = {}
    for prefix_caching in (True, False):
        say(f"prefix caching {'on' if prefix_caching else 'off'}: {num_requests} requests")
        core = subject.engine_for(job, is_speculating=False, prefix_caching=prefix_caching)
        count = _Count(core)
        records: list[dict[str, Any]] = []
        measured = serve(core, job, on_record=records.append)
        texts[prefix_caching] = [record["response"]["body"]["choices"][0]["text"] for record in records]
        found[prefix_caching] = {"prefill_tokens": count.prefill_tokens, "seconds": measured.seconds}
    return {
        "num_requests": num_requests,
        "header_tokens": header_tokens,
        "with": found[True],
        "without": found[False],
        "work_ratio": found[False]["prefill_tokens"] / found[True]["prefill_tokens"],
        "is_identical": texts[True] == texts[False],
    }


def _job(subject: Subject, *, num_requests: int, header_tokens: int) -> Job:
    """Return requests with one header and ends of their own, made of the prompts' tokens."""
    longest = header_tokens + _OWN_TOKENS + _MAX_TOKENS
    limit = subject.settings.max_model_len or subject.loaded.context_length
    if longest > limit:
        raise UsageError(f"the prefix part needs sequences of {longest} tokens, the limit is {limit}: leave it out.")
    stream = cycle(subject.tokens)
    header = list(islice(stream, header_tokens))
    prompts = [header + list(islice(stream, _OWN_TOKENS)) for _ in range(num_requests)]
    return Job(prompts=prompts, max_tokens=_MAX_TOKENS, max_num_seqs=min(64, num_requests))


class _Count:
    """Counts the prompt tokens that an engine's forward passes compute, from its plans and from nothing else."""

    def __init__(self, core: EngineCore):
        self.prefill_tokens = 0
        self._forward = core.runner.forward
        core.runner = self

    def forward(self, plan: StepPlan) -> Any:
        """Compute, and count."""
        for chunk in plan.chunks:
            end = chunk.start + len(chunk.token_ids)
            self.prefill_tokens += max(0, min(end, chunk.sequence.num_prompt_tokens) - chunk.start)
        return self._forward(plan)
