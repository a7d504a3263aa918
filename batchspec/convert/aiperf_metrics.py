"""The metrics of one request under AIPerf's names."""

from collections.abc import Mapping
from typing import Any

__all__ = ["draft_metrics", "spec_decode_acceptance", "time_metrics"]

_COPIED = ("num_accepted_draft_tokens", "num_draft_tokens", "num_spec_steps", "num_spec_tokens")
_PER_STEP = ("per_step_accepted", "per_step_drafted")


def time_metrics(timing: Mapping[str, Any], *, num_tokens: int | None) -> dict[str, dict[str, Any]]:
    """Return latencies in milliseconds; empty without timing fields.

    Args:
        timing: ``metrics`` of a body.
        num_tokens: of the output.
    """
    queue, first, rest = (
        timing.get(name) for name in ("queue_time_ms", "time_to_first_token_ms", "generation_time_ms")
    )
    if queue is None or first is None or rest is None:
        return {}
    metrics = {
        "time_to_first_token": {"value": queue + first, "unit": "ms"},
        "request_latency": {"value": queue + first + rest, "unit": "ms"},
    }
    if num_tokens is not None and num_tokens > 1 and rest > 0:
        gap = rest / (num_tokens - 1)
        metrics["inter_token_latency"] = {"value": gap, "unit": "ms"}
        metrics["output_token_throughput_per_user"] = {"value": 1000 / gap, "unit": "tokens/sec/user"}
    return metrics


def draft_metrics(stated: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the acceptance metrics; empty without a verification step.

    Args:
        stated: ``speculative_decoding`` of a body.
    """
    if stated is None or not stated["num_spec_steps"]:
        return {}
    steps, drafted, accepted = (
        stated[name] for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
    )
    values = {
        "spec_decode_acceptance_length": (1 + accepted / steps, "ratio"),
        "spec_decode_draft_acceptance_rate": (100 * accepted / drafted, "%"),
        "spec_decode_accepted_per_verified": ((accepted + steps) / (drafted + steps), "ratio"),
        "spec_decode_steps": (steps, "count"),
        "spec_decode_accepted_draft_tokens": (accepted, "tokens"),
        "spec_decode_draft_tokens": (drafted, "tokens"),
    }
    return {name: {"value": value, "unit": unit} for name, (value, unit) in values.items()}


def spec_decode_acceptance(
    stated: Mapping[str, Any] | None, *, engine: str, usage: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return AIPerf's own acceptance record, with a sparse histogram; None without a verification step.

    Args:
        stated: ``speculative_decoding`` of a body.
        engine: who says so.
        usage: of the body.
    """
    if stated is None or not stated["num_spec_steps"]:
        return None
    return {
        "engine": engine,
        "mean_acceptance_length": stated["mean_acceptance_length"],
        "draft_acceptance_rate": stated["draft_acceptance_rate"],
        "acceptance_histogram": {str(j): count for j, count in enumerate(stated["acceptance_histogram"]) if count},
        **{name: stated[name] for name in _COPIED},
        "completion_tokens": None if usage is None else usage["completion_tokens"],
        **{name: stated[name] for name in _PER_STEP if stated.get(name) is not None},
    }
