"""SGLang's ``spec_tokens_details`` and ``meta_info`` in their three generations of names, and TokenSpeed's."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.numbers import MAX_DRAFT, first_whole, number, whole, wholes
from batchspec.ingest.record import Acceptance

__all__ = ["read_sglang", "read_tokenspeed"]

_ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_DRAFTED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAMS = ("spec_correct_drafts_histogram", "spec_accept_histogram")


def read_sglang(block: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what a block with ``spec_verify_ct`` states; None without that key.

    SGLang writes 0 for what it does not know, so a 0 beside verified steps counts as absent unless another number
    supports it. The drafted total is derived: verified steps times the configured number of drafts, too high where
    drafts are shorter; k is derived from it.
    """
    steps = whole(block, "spec_verify_ct")
    if steps is None:
        return None
    accepted, drafted = first_whole(block, _ACCEPTED), first_whole(block, _DRAFTED)
    histogram = next((found for name in _HISTOGRAMS if (found := wholes(block, name))), None)
    length = number(block, "spec_accept_length")
    if steps:
        drafted, length = drafted or None, length or None
        if accepted == 0 and drafted is None and histogram is None:
            accepted = None
    return Acceptance(
        num_spec_steps=steps,
        num_draft_tokens=drafted,
        num_accepted_draft_tokens=accepted,
        num_spec_tokens=_configured(steps, drafted),
        acceptance_histogram=histogram,
        stated_length=length,
        derived=frozenset({"num_draft_tokens", "num_spec_tokens"}),
    )


def _configured(steps: int, drafted: int | None) -> int | None:
    """Return k where the drafted total is a whole multiple of the steps."""
    if not steps or not drafted or drafted % steps or drafted // steps > MAX_DRAFT:
        return None
    return drafted // steps


def read_tokenspeed(block: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what TokenSpeed's ``meta_info`` states; its token counts are off by up to one a step, so estimated."""
    accepted, drafted = whole(block, "spec_accepted_tokens"), whole(block, "spec_draft_tokens")
    if accepted is None or drafted is None:
        return None
    return Acceptance(
        num_spec_steps=whole(block, "spec_verify_ct"),
        num_draft_tokens=drafted,
        num_accepted_draft_tokens=accepted,
        estimated=frozenset({"num_draft_tokens", "num_accepted_draft_tokens"}),
    )
