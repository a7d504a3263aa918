"""The ``timings`` of llama.cpp's server, its forks, and mlx-vlm."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.numbers import first_whole, whole
from batchspec.ingest.record import Acceptance

__all__ = ["read_llama_cpp", "read_mlx_vlm"]

_ROUNDS = ("draft_rounds", "draft_n_verif_steps")


def read_mlx_vlm(timings: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what timings with a count of verification rounds state; None without one.

    More may be accepted than the output has tokens: matches behind the stop are counted, as they should be.
    """
    rounds = first_whole(timings, _ROUNDS)
    if rounds is None:
        return None
    return Acceptance(
        num_spec_steps=rounds,
        num_draft_tokens=whole(timings, "draft_n"),
        num_accepted_draft_tokens=whole(timings, "draft_n_accepted"),
    )


def read_llama_cpp(timings: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what timings without a count of steps state; None where nothing was drafted.

    llama.cpp does not tell its verification steps. Output tokens after the first that no draft gave need a step each:
    an estimate, too high where steps had no draft, too low where a stop cut matches off. No histogram follows from it.
    """
    drafted, accepted = whole(timings, "draft_n"), whole(timings, "draft_n_accepted")
    if not drafted:
        return None
    predicted = whole(timings, "predicted_n")
    steps = None if predicted is None or accepted is None else min(predicted - 1 - accepted, drafted)
    return Acceptance(
        num_spec_steps=steps if steps is not None and steps > 0 else None,
        num_draft_tokens=drafted,
        num_accepted_draft_tokens=accepted,
        estimated=frozenset({"num_spec_steps"}),
    )
