"""TensorRT-LLM's ``speculative_decoding``, of a choice or of a request's performance metrics."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.numbers import number, whole, wholes
from batchspec.ingest.record import Acceptance

__all__ = ["read_iterations", "read_tensorrt"]


def read_tensorrt(block: Mapping[str, Any], choice: Mapping[str, Any]) -> Acceptance | None:
    """Return what a block with TensorRT-LLM's totals states.

    Zeros for everything without a count of steps are what versions write that do not count: they state nothing. Of a
    tree of drafts the drafted total counts paths.

    Args:
        block: with ``total_draft_tokens``.
        choice: what it stands in.
    """
    accepted, drafted = whole(block, "total_accepted_draft_tokens"), whole(block, "total_draft_tokens")
    steps = whole(block, "num_spec_steps")
    if drafted is None or (steps is None and drafted == 0):
        return None
    return Acceptance(
        num_spec_steps=steps,
        num_draft_tokens=drafted,
        num_accepted_draft_tokens=accepted,
        num_spec_tokens=whole(block, "num_spec_tokens"),
        acceptance_histogram=wholes(block, "acceptance_histogram"),
        stated_length=number(choice, "avg_decoded_tokens_per_iter"),
    )


def read_iterations(choice: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return a choice's ``avg_decoded_tokens_per_iter``, an average over all iterations, drafted or not."""
    length = number(choice, "avg_decoded_tokens_per_iter")
    return None if length is None else Acceptance(stated_length=length)
