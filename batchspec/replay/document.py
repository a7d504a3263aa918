"""The result of a replay as one JSON document, which the tables are made of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.replay.census import Census
from batchspec.replay.ratios import Sums
from batchspec.replay.settings import ReplaySettings
from batchspec.replay.summary import Slice, summarise
from batchspec.report.definitions import DEFINITIONS
from batchspec.report.logs.bootstrap import CONFIDENCE, NUM_RESAMPLES, SEED

__all__ = ["replay_document"]

_SHARED = (
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "tokens_per_decode_step",
    "num_spec_steps",
    "num_decode_steps",
    "num_discarded_tokens",
    "acceptance_histogram",
)
_OWN = {
    "steps_saved": "1 - decode steps / tokens emitted after the first",
    "predicted_speedup": "simulated time without drafts / with them; making the drafts takes none",
    "num_undecided_tokens": "draft tokens behind the end of what was recorded, which could have been accepted",
    "interval": f"{CONFIDENCE:.0%} of the draws of the paired bootstrap over requests",
    "best": "most tokens a second with step costs, else per decode step, as if rows cost nothing",
    "share_of_draws": "draws of requests in which no other setting is better",
    "next": "the best setting of the other methods, or the next best one if there is one method",
}


def replay_document(
    settings: ReplaySettings,
    *,
    census: Census,
    sums: Sums,
    histograms: Mapping[str | None, NDArray[np.int64]],
    jobs: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return ``replayed``, ``settings``, ``costs``, ``bootstrap``, ``all``, ``categories`` and ``definitions``.

    Ratios with an empty denominator are None. Floats are unrounded.

    Args:
        settings: of the replay.
        census: of what was replayed.
        sums: by request.
        histograms: by category, see ``Tallies``.
        jobs: of each log, its path and what its machine is taken for.
    """

    def summary_of(each: Sums, histogram: NDArray[np.int64]) -> dict[str, Any]:
        requests = Slice(
            each=each,
            histograms=histogram,
            methods=[config.method for config in settings.configs],
            lengths=[config.num_speculative_tokens for config in settings.configs],
        )
        return summarise(requests)

    members = census.members()
    return {
        "replayed": {"jobs": [dict(job) for job in jobs], **census.document()},
        "settings": [config.document() for config in settings.configs],
        "costs": None if settings.costs is None else settings.costs.document(),
        "bootstrap": {"num_draws": NUM_RESAMPLES, "seed": SEED, "confidence": CONFIDENCE},
        "all": summary_of(sums, np.sum(list(histograms.values()), axis=0)),
        "categories": {name: summary_of(sums.of(each), histograms[name]) for name, each in members.items()},
        "definitions": {name: DEFINITIONS[name] for name in _SHARED} | _OWN,
    }
