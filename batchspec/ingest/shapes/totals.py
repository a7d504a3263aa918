"""Engines that state two or three totals of draft tokens and no steps."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.faults import contradicts
from batchspec.ingest.numbers import first_whole, whole
from batchspec.ingest.record import Acceptance

__all__ = ["read_exllama", "read_lm_studio", "read_predictions", "read_tabby", "read_tensorfold"]

_ACCEPTED = ("accepted_draft_tokens_count", "acceptedDraftTokensCount")
_REJECTED = ("rejected_draft_tokens_count", "rejectedDraftTokensCount")
_IGNORED = ("ignored_draft_tokens_count", "ignoredDraftTokensCount")
_TOTAL = ("total_draft_tokens_count", "totalDraftTokensCount")


def read_lm_studio(block: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what LM Studio's ``stats`` or ``usage`` states, in either spelling; None without its draft counts.

    Raises:
        RowFault: accepted, rejected and ignored do not add up to the total.
    """
    accepted, total = first_whole(block, _ACCEPTED), first_whole(block, _TOTAL)
    rejected, ignored = first_whole(block, _REJECTED), first_whole(block, _IGNORED) or 0
    if accepted is None or (total is None and rejected is None):
        return None
    parts = None if rejected is None else accepted + rejected + ignored
    if total is not None and parts is not None and parts != total:
        raise contradicts(f"accepted, rejected and ignored draft tokens add up to {parts}, not to the total of {total}")
    return Acceptance(
        num_draft_tokens=parts if total is None else total,
        num_accepted_draft_tokens=accepted,
        derived=frozenset({"num_draft_tokens"} if total is None else ()),
    )


def read_exllama(block: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what the last result of an exllama job states."""
    return _accepted_and_rejected(block, "accepted_draft_tokens", "rejected_draft_tokens")


def read_tabby(block: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what the finish chunk of TabbyAPI's backend states."""
    return _accepted_and_rejected(block, "draft_accept", "draft_reject")


def read_tensorfold(block: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what TensorFold's ``drafted`` and ``accepted`` state; None unless both are integers."""
    drafted, accepted = block.get("drafted"), block.get("accepted")
    if type(drafted) is not int or type(accepted) is not int:
        return None
    drafted, accepted = whole(block, "drafted"), whole(block, "accepted")
    return Acceptance(num_draft_tokens=drafted, num_accepted_draft_tokens=accepted)


def read_predictions(details: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return ``usage.completion_tokens_details``, where some servers put draft tokens; None where both are 0.

    OpenAI means Predicted Outputs by these fields, so they are estimates of something else until the server is known.
    """
    found = _accepted_and_rejected(details, "accepted_prediction_tokens", "rejected_prediction_tokens")
    if found is None or not found.num_draft_tokens:
        return None
    return Acceptance(
        num_draft_tokens=found.num_draft_tokens,
        num_accepted_draft_tokens=found.num_accepted_draft_tokens,
        estimated=frozenset({"num_draft_tokens", "num_accepted_draft_tokens"}),
    )


def _accepted_and_rejected(block: Mapping[str, Any], accepted_name: str, rejected_name: str) -> Acceptance | None:
    accepted, rejected = whole(block, accepted_name), whole(block, rejected_name)
    if accepted is None or rejected is None:
        return None
    return Acceptance(
        num_draft_tokens=accepted + rejected,
        num_accepted_draft_tokens=accepted,
        derived=frozenset({"num_draft_tokens"}),
    )
