"""The metrics of one request under AIPerf's names."""

from typing import Any

from batchspec.ingest import Acceptance, Origin
from batchspec.response_times import ResponseTimes

__all__ = ["draft_metrics", "spec_decode_acceptance", "time_metrics", "token_metrics"]

_COUNTS = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")

Metrics = dict[str, dict[str, Any]]


def token_metrics(*, num_in: int | None, num_out: int | None) -> Metrics:
    """Return the lengths of prompt and output, as far as they are told."""
    lengths = {"input_sequence_length": num_in, "output_sequence_length": num_out}
    return {name: {"value": length, "unit": "tokens"} for name, length in lengths.items() if length is not None}


def time_metrics(times: ResponseTimes, *, num_tokens: int | None) -> Metrics:
    """Return latencies in milliseconds; empty where the response does not tell them all.

    Args:
        times: of the response.
        num_tokens: of its output.
    """
    latency, rest = times.latency_ms, times.generation_ms
    if latency is None or rest is None:
        return {}
    metrics: Metrics = {
        "time_to_first_token": {"value": (times.queue_ms or 0) + (times.first_token_ms or 0), "unit": "ms"},
        "request_latency": {"value": latency, "unit": "ms"},
    }
    if num_tokens is not None and num_tokens > 1 and rest > 0:
        gap = rest / (num_tokens - 1)
        metrics["inter_token_latency"] = {"value": gap, "unit": "ms"}
        metrics["output_token_throughput_per_user"] = {"value": 1000 / gap, "unit": "tokens/sec/user"}
    return metrics


def draft_metrics(acceptance: Acceptance | None) -> Metrics:
    """Return the acceptance metrics; empty unless steps and tokens are counted and there was a step."""
    counts = _counts(acceptance)
    if counts is None:
        return {}
    steps, drafted, accepted = counts
    values: dict[str, tuple[float, str]] = {
        "spec_decode_acceptance_length": (1 + accepted / steps, "ratio"),
        "spec_decode_draft_acceptance_rate": (100 * accepted / drafted, "%"),
        "spec_decode_accepted_per_verified": ((accepted + steps) / (drafted + steps), "ratio"),
        "spec_decode_steps": (steps, "count"),
        "spec_decode_accepted_draft_tokens": (accepted, "tokens"),
        "spec_decode_draft_tokens": (drafted, "tokens"),
    }
    return {name: {"value": value, "unit": unit} for name, (value, unit) in values.items()}


def spec_decode_acceptance(
    acceptance: Acceptance | None, *, engine: str, completion_tokens: int | None
) -> dict[str, Any] | None:
    """Return AIPerf's own acceptance record, with a sparse histogram; None where there is no histogram, or no step.

    Args:
        acceptance: what the response states.
        engine: who says so.
        completion_tokens: of the output.
    """
    counts = _counts(acceptance)
    if acceptance is None or counts is None or acceptance.acceptance_histogram is None:
        return None
    steps, drafted, accepted = counts
    record = {
        "engine": engine,
        "mean_acceptance_length": 1 + accepted / steps,
        "draft_acceptance_rate": accepted / drafted,
        "acceptance_histogram": {str(j): count for j, count in enumerate(acceptance.acceptance_histogram) if count},
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": drafted,
        "num_spec_steps": steps,
        "num_spec_tokens": acceptance.num_spec_tokens,
        "completion_tokens": completion_tokens,
    }
    lists = {"per_step_accepted": acceptance.per_step_accepted, "per_step_drafted": acceptance.per_step_drafted}
    return record | {name: list(values) for name, values in lists.items() if values is not None}


def _counts(acceptance: Acceptance | None) -> tuple[int, int, int] | None:
    """Return steps, drafted and accepted tokens, None unless all are counted and there were some."""
    if acceptance is None or any(acceptance.origin(name) is Origin.ESTIMATED for name in _COUNTS):
        return None
    steps, drafted, accepted = (getattr(acceptance, name) for name in _COUNTS)
    return (steps, drafted, accepted) if steps and drafted and accepted is not None else None
