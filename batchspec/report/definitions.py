"""What every number of a report means, in one short line each; printed with the numbers."""

from collections.abc import Mapping
from types import MappingProxyType

from batchspec.report.layout import ABSENT

__all__ = ["DEFINITIONS"]

DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        "pooled": "ratio of the sums over all requests; long outputs weigh more",
        "mean_over_requests": "mean of the ratios of the requests with a step; each weighs the same",
        "mean_acceptance_length": "1 + accepted / steps; includes matches that a stop cut off",
        "tokens_per_decode_step": "tokens emitted after the first / all decode steps",
        "draft_acceptance_rate": "accepted / drafted",
        "num_spec_steps": "decode steps that verified at least one draft token",
        "num_draft_tokens": "draft tokens verified; padding is never counted",
        "num_accepted_draft_tokens": "leading draft tokens matched; the target's own next token not counted",
        "num_discarded_tokens": "matched or next tokens that a stop cut off; accepted, but not emitted",
        "num_decode_steps": "decode steps with or without a draft",
        "acceptance_histogram": "entry j: steps that accepted exactly j draft tokens",
        "marginal_rate": "accepted at the position / steps",
        "conditional_rate": f"accepted / drafted at the position; {ABSENT} if not recorded",
        "unreported": "recorded for requests whose records carry no metrics, by cause",
        "difference": "per-request sums + unreported - Prometheus totals",
    }
)
