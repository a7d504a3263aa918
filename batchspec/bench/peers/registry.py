"""Loading the engines that a benchmark is run beside."""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from batchspec.bench.job import Contestant
from batchspec.bench.peer_names import WORKERS
from batchspec.bench.peers.worker import Worker
from batchspec.bench.settings import BenchSettings
from batchspec.bench.subject import Subject
from batchspec.drafting import SpeculativeConfig
from batchspec.model.locate import EMBEDDED_TARGET

__all__ = ["Peers", "open_peers"]

Peers = Callable[[int], Mapping[str, Contestant]]
"""From a batch size to the ways of generating that other engines have for it, by name."""


@contextmanager
def open_peers(settings: BenchSettings, subject: Subject, *, say: Callable[[str], None]) -> Iterator[Peers]:
    """Load the peers; the processes of those in their own environments wait until they are asked.

    Raises:
        UsageError: one of them cannot be loaded.
    """
    num_threads = len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        sources: list[Peers] = []
        for name, python in settings.peers.items():
            say(f"loading {name}, once for each way of using it")
            if python is None:
                sources.append(_transformers(settings, subject, num_threads=num_threads))
                continue
            ways = _ways(name, settings, subject, num_threads=num_threads)
            workers = {
                label: stack.enter_context(Worker(name, python=python, script=WORKERS[name], settings=config))
                for label, config in ways
            }
            sources.append(partial(_whatever_the_size, workers))
        yield partial(_together, sources)


def _whatever_the_size(workers: Mapping[str, Contestant], _: int) -> Mapping[str, Contestant]:
    return workers


def _together(sources: list[Peers], max_num_seqs: int) -> Mapping[str, Contestant]:
    return {name: contestant for source in sources for name, contestant in source(max_num_seqs).items()}


def _ways(
    name: str, settings: BenchSettings, subject: Subject, *, num_threads: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the engine without speculation, and with it if we have it, too: a name and what the worker is told."""
    speculative = settings.engine.speculative
    longest = max(map(len, subject.prompts.token_ids)) + settings.max_tokens
    max_model_len = longest + 1 + speculative.num_speculative_tokens
    most_running = max(settings.max_num_seqs)
    common = {
        "model": settings.peer_models.get(name, settings.model or str(EMBEDDED_TARGET)),
        "dtype": settings.peer_dtypes.get(name, subject.dtype),
        "is_compiled": name.endswith("-compiled"),
        "num_threads": num_threads,
        "max_num_seqs": most_running,
        "max_model_len": max_model_len,
        "kv_cache_gigabytes": math.ceil(1.1 * most_running * max_model_len * subject.loaded.bytes_per_token / 2**30),
    }
    yield name, common | {"num_spec_tokens": 0}
    if speculative.method != "none":
        yield f"{name}, prompt lookup", common | _lookup(speculative)


def _lookup(speculative: SpeculativeConfig) -> dict[str, int]:
    """Return what the engine is to look up: the same as ours, or what is usual where we draft otherwise."""
    config = speculative if speculative.method == "ngram" else SpeculativeConfig()
    return {
        "num_spec_tokens": config.num_speculative_tokens,
        "prompt_lookup_min": config.prompt_lookup_min,
        "prompt_lookup_max": config.prompt_lookup_max,
    }


def _transformers(settings: BenchSettings, subject: Subject, *, num_threads: int) -> Peers:
    from batchspec.bench.peers.transformers_peer import TransformersPeer

    model = settings.peer_models.get("transformers", settings.model or str(EMBEDDED_TARGET))
    speculative = settings.engine.speculative
    return TransformersPeer(
        model,
        dtype=settings.peer_dtypes.get("transformers", subject.dtype),
        device=subject.loaded.device,
        num_threads=num_threads,
        num_spec_tokens=_lookup(speculative)["num_spec_tokens"] if speculative.method != "none" else 0,
    ).contestants
