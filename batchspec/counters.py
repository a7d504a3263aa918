"""The Prometheus account: counters named as vLLM names them, in a registry of the run's own.

The speculative counters are fed from the verifier's batch-level acceptance mask and from nothing else, so that the
reconciliation against per-request recorders compares two independent accounts. Names follow the vLLM documentation
page "Production Metrics".
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Counters"]

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)
_LABELS = ("model_name", "engine")


class Counters:
    """One run's counters, gauges and histograms.

    Args:
        model_name: value of the ``model_name`` label.
        num_spec_tokens: the configured k; positions ``0..k-1`` exist from the start, at zero.
        engine: value of the ``engine`` label.
        registry: where the series live; a new one by default.
    """

    def __init__(
        self, *, model_name: str, num_spec_tokens: int, engine: str = "0", registry: CollectorRegistry | None = None
    ):
        self.registry = CollectorRegistry() if registry is None else registry
        self.num_spec_tokens = num_spec_tokens
        self.labels = {"model_name": model_name, "engine": engine}
        self._children: dict[str, Counter] = {}
        self._seen: dict[str, int] = {}
        self._drafts = self._counter("spec_decode_num_drafts", "Verification steps that had a draft.")
        self._draft_tokens = self._counter("spec_decode_num_draft_tokens", "Draft tokens proposed.")
        self._accepted_tokens = self._counter("spec_decode_num_accepted_tokens", "Draft tokens accepted.")
        self._per_pos = self._split_counter(
            "spec_decode_num_accepted_tokens_per_pos",
            "Draft tokens accepted, by their position in the draft.",
            label="position",
            values=tuple(str(i) for i in range(num_spec_tokens)),
        )
        self.prompt_tokens = self._counter("prompt_tokens", "Prompt tokens computed, for every sample of a prompt.")
        self.generation_tokens = self._counter("generation_tokens", "Tokens that reached an output.")
        self.num_preemptions = self._counter("num_preemptions", "Sequences put back because the cache was full.")
        self._counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.")
        self._counter("prefix_cache_hits", "Prompt tokens found in the prefix cache.")
        self.request_success = self._split_counter(
            "request_success",
            "Sequences that ended, by reason.",
            label="finished_reason",
            values=("stop", "length", "abort", "error"),
        )
        self.num_running = self._gauge("num_requests_running", "Sequences in the running batch.")
        self.num_waiting = self._gauge("num_requests_waiting", "Sequences waiting to be admitted.")
        self.kv_cache_usage = self._gauge("kv_cache_usage_perc", "Owned fraction of the cache blocks, 0 to 1.")
        self.time_to_first_token = self._histogram("time_to_first_token_seconds", "Queued to first token.", _SECONDS)
        self.inter_token_latency = self._histogram("inter_token_latency_seconds", "Mean gap between tokens.", _SECONDS)
        self.e2e_latency = self._histogram("e2e_request_latency_seconds", "Queued to last token.", _SECONDS)
        self.request_prompt_tokens = self._histogram("request_prompt_tokens", "Prompt tokens of a sequence.", _TOKENS)
        self.request_generation_tokens = self._histogram(
            "request_generation_tokens", "Output tokens of a sequence.", _TOKENS
        )

    def _counter(self, name: str, text: str) -> Counter:
        child = Counter(f"vllm:{name}", text, labelnames=_LABELS, registry=self.registry).labels(**self.labels)
        self._children[name] = child
        return child

    def _split_counter(self, name: str, text: str, *, label: str, values: tuple[str, ...]) -> dict[str, Counter]:
        """Return one counter for each value of a further label, all of them present from the start."""
        family = Counter(f"vllm:{name}", text, labelnames=(*_LABELS, label), registry=self.registry)
        split = {value: family.labels(**self.labels, **{label: value}) for value in values}
        self._children |= {f"{name}/{value}": child for value, child in split.items()}
        return split

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"vllm:{name}", text, labelnames=_LABELS, registry=self.registry).labels(**self.labels)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        family = Histogram(f"vllm:{name}", text, labelnames=_LABELS, registry=self.registry, buckets=buckets)
        return family.labels(**self.labels)

    def observe_drafts(self, *, num_drafted: NDArray[np.int64], accepted: NDArray[np.bool_]) -> None:
        """Count one step's verification from the batch-level result.

        Args:
            num_drafted: (drafting rows,) draft length of each.
            accepted: (drafting rows, longest draft) whether draft token i and all before it were matched.
        """
        if not len(num_drafted):
            return
        self._drafts.inc(len(num_drafted))
        self._draft_tokens.inc(int(num_drafted.sum()))
        self._accepted_tokens.inc(int(accepted.sum()))
        for position, count in enumerate(accepted.sum(axis=0)):
            self._per_pos[str(position)].inc(int(count))

    def observe_first_token(self, *, num_prompt_tokens: int, seconds: float) -> None:
        """Count a sequence whose prompt is computed, ``seconds`` after it was queued."""
        self.prompt_tokens.inc(num_prompt_tokens)
        self.time_to_first_token.observe(seconds)

    def observe_gap(self, *, seconds: float, num_tokens: int) -> None:
        """Count a step that took ``seconds`` and gave a sequence ``num_tokens`` tokens; each gets an equal share."""
        for _ in range(num_tokens):
            self.inter_token_latency.observe(seconds / num_tokens)

    def observe_finished(self, *, reason: str, num_prompt_tokens: int, num_output_tokens: int, seconds: float) -> None:
        """Count a sequence that ended, ``seconds`` after it was queued."""
        self.request_success[reason].inc()
        self.e2e_latency.observe(seconds)
        self.request_prompt_tokens.observe(num_prompt_tokens)
        self.request_generation_tokens.observe(num_output_tokens)

    def observe_step(self, *, num_tokens: int, num_preemptions: int) -> None:
        """Count one engine step; ``num_preemptions`` is the scheduler's total so far."""
        self.generation_tokens.inc(num_tokens)
        self._count_on("num_preemptions", num_preemptions)

    def observe_load(self, *, num_running: int, num_waiting: int, usage: float) -> None:
        """Show what is running and waiting now; ``usage`` is a fraction."""
        self.num_running.set(num_running)
        self.num_waiting.set(num_waiting)
        self.kv_cache_usage.set(usage)

    def observe_prefixes(self, *, num_queries: int, num_hits: int) -> None:
        """Count the prompt tokens looked up in the prefix cache and found there; the cache's totals so far."""
        self._count_on("prefix_cache_queries", num_queries)
        self._count_on("prefix_cache_hits", num_hits)

    def _count_on(self, name: str, total: int) -> None:
        """Count what a total has grown by since it was last seen."""
        self._children[name].inc(total - self._seen.get(name, 0))
        self._seen[name] = total

    def totals(self) -> dict[str, int | list[int]]:
        """Return the speculative totals, read back from the registry's own samples."""
        positions = range(self.num_spec_tokens)
        return {
            "num_spec_steps": self._read("spec_decode_num_drafts"),
            "num_draft_tokens": self._read("spec_decode_num_draft_tokens"),
            "num_accepted_draft_tokens": self._read("spec_decode_num_accepted_tokens"),
            "num_accepted_tokens_per_pos": [
                self._read("spec_decode_num_accepted_tokens_per_pos", position=str(i)) for i in positions
            ],
        }

    def _read(self, name: str, **labels: str) -> int:
        value = self.registry.get_sample_value(f"vllm:{name}_total", self.labels | labels)
        return int(value or 0)

    def exposition(self) -> str:
        """Return every series in the text exposition format."""
        return generate_latest(self.registry).decode()

    def snapshot(self) -> dict[str, float]:
        """Return every counter's value, keyed by series, for a checkpoint that ``restore`` can read."""
        return {key: next(iter(child.collect())).samples[0].value for key, child in self._children.items()}

    def restore(self, snapshot: Mapping[str, float]) -> None:
        """Add a checkpoint's values, so that a resumed run counts on; histograms and gauges start afresh."""
        for key, value in snapshot.items():
            if key in self._children:
                self._children[key].inc(value)
