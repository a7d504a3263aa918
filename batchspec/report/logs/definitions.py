"""What the numbers mean that only a report of logs has; the others are in ``report/definitions.py``."""

from collections.abc import Mapping
from types import MappingProxyType

from batchspec.report.definitions import DEFINITIONS as SHARED
from batchspec.report.layout import ABSENT
from batchspec.report.logs.bootstrap import CONFIDENCE, MAX_UNITS, NUM_RESAMPLES, SEED

__all__ = ["DEFINITIONS"]

_SHARED = (
    "pooled",
    "mean_over_requests",
    "mean_acceptance_length",
    "tokens_per_decode_step",
    "draft_acceptance_rate",
    "num_spec_steps",
    "num_draft_tokens",
    "num_accepted_draft_tokens",
    "num_discarded_tokens",
    "num_decode_steps",
    "acceptance_histogram",
    "marginal_rate",
)

DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {name: SHARED[name] for name in _SHARED}
    | {
        "conditional_rate": f"accepted / drafted at the position; {ABSENT} if a request does not tell what it drafted",
        "completion_tokens_per_step": "output tokens / steps, as SGLang's length; counts the first token and decode "
        "steps without a draft, and nothing that a stop cut off",
        "macro": "mean of the groups' ratios; each group weighs the same, and they are counted instead of requests",
        "interval": f"{CONFIDENCE * 100:.0f} % percentile bootstrap over requests: {NUM_RESAMPLES:,} draws with "
        f"replacement, seed {SEED}; above {MAX_UNITS:,} requests, over {MAX_UNITS:,} random groups of them",
        "estimated": "a number that its engine does not state, or that may be wrong; in no other number of this report",
        "exact": "the engine counted it",
        "derived": "follows from counted numbers, or is the engine's own product (SGLang: drafted = steps x k)",
        "absent": "not told",
    }
)
