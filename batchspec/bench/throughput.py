"""Throughput over batch sizes: with speculation, without it, with metrics in every record, and of other engines."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from itertools import permutations
from typing import Any

from batchspec.acceptance import Level
from batchspec.bench.interruption import Interruption
from batchspec.bench.job import Contestant, Job, Measured, serve
from batchspec.bench.spread import alternate, ratios, spread
from batchspec.bench.subject import Subject

__all__ = ["Ours", "job_for", "measure_throughput", "our_contestants"]

_LEAST_PROMPTS = 8  # also for small batches, so that not one text decides
_WARM_UP_TOKENS = 4


class Ours:
    """One of our engines, made anew for every job, so that no cache is left from the job before.

    Args:
        subject: the model.
        is_speculating: whether it drafts.
        level: what is recorded.
    """

    def __init__(self, subject: Subject, *, is_speculating: bool, level: Level = Level.NONE):
        self.subject = subject
        self.is_speculating = is_speculating
        self.level = level

    def run(self, job: Job) -> Measured:
        """Do the job and say what it took; making the engine is left out."""
        core = self.subject.engine_for(job, is_speculating=self.is_speculating, level=self.level)
        return serve(core, job)


def our_contestants(subject: Subject) -> dict[str, Contestant]:
    """Return our engines by name: without speculation, with it, and with detailed metrics."""
    found: dict[str, Contestant] = {"none": Ours(subject, is_speculating=False)}
    method = subject.settings.speculative.method
    if method != "none":
        found[method] = Ours(subject, is_speculating=True)
        found[f"{method}, detailed"] = Ours(subject, is_speculating=True, level=Level.DETAILED)
    return found


def job_for(subject: Subject, *, max_num_seqs: int, max_tokens: int) -> Job:
    """Return the job for a batch size: as many prompts as fill the batch once, at least eight, as far as there are."""
    prompts = subject.prompts.token_ids[: max(max_num_seqs, _LEAST_PROMPTS)]
    return Job(prompts=prompts, max_tokens=max_tokens, max_num_seqs=max_num_seqs)


def measure_throughput(
    job: Job,
    contestants: Mapping[str, Contestant],
    *,
    rounds: int,
    say: Callable[[str], None],
    interruption: Interruption | None = None,
) -> dict[str, Any]:
    """Give the job to everyone in turn, round by round; return what it took and every ratio between two of them."""
    say(f"throughput at {job.max_num_seqs} sequences: warming up")
    alternate({name: partial(one.run, job.shortened(_WARM_UP_TOKENS)) for name, one in contestants.items()}, rounds=1)
    measured = alternate(
        {name: partial(one.run, job) for name, one in contestants.items()},
        rounds=rounds,
        on_round=lambda number: say(f"throughput at {job.max_num_seqs} sequences, round {number} of {rounds}"),
        interruption=interruption,
    )
    return {
        "max_num_seqs": job.max_num_seqs,
        "num_prompts": len(job.prompts),
        "prompt_tokens": sum(map(len, job.prompts)),
        "max_tokens": job.max_tokens,
        "engines": {name: _document(runs) for name, runs in measured.items()},
        "ratios": [_ratio(above, below, measured) for above, below in permutations(measured, 2)],
    }


def _document(runs: list[Measured]) -> dict[str, Any]:
    return {
        "tokens_per_second": vars(spread([run.output_tokens / run.seconds for run in runs])),
        "seconds": vars(spread([run.seconds for run in runs])),
        "output_tokens": runs[-1].output_tokens,
        "counts": runs[-1].counts,
        "rounds": [asdict(run) for run in runs],
    }


def _ratio(name: str, over: str, measured: Mapping[str, list[Measured]]) -> dict[str, Any]:
    """Return how many times as fast one engine is as another, and the processor time that it takes beside the other."""
    rates = [[run.output_tokens / run.seconds for run in measured[each]] for each in (name, over)]
    cpu = [[run.cpu_seconds or 0.0 for run in measured[each]] for each in (name, over)]
    is_known = all(map(all, cpu))
    return {
        "engine": name,
        "over": over,
        "tokens_per_second": vars(ratios(*rates)),
        "cpu_seconds": vars(ratios(*cpu)) if is_known else None,
    }
