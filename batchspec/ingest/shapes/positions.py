"""MLC-LLM's counts by position in the draft."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.numbers import MAX_DRAFT, wholes
from batchspec.ingest.record import Acceptance

__all__ = ["read_mlc"]


def read_mlc(block: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what ``draft_count`` and ``accept_count`` state; None without both.

    Where they stand and which token is position 0 was never seen in a release, so every number is estimated.
    """
    drafted, accepted = wholes(block, "draft_count"), wholes(block, "accept_count")
    if not drafted or accepted is None or len(accepted) != len(drafted) or len(drafted) > MAX_DRAFT:
        return None
    return Acceptance(
        num_spec_steps=drafted[0],
        num_draft_tokens=sum(drafted),
        num_accepted_draft_tokens=sum(accepted),
        estimated=frozenset({"num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens"}),
    )
