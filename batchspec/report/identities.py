"""What must hold inside one record's metrics, whoever wrote it."""

from collections.abc import Mapping
from typing import Any

__all__ = ["broken_identities"]


def broken_identities(
    speculative_decoding: Mapping[str, Any], *, batchspec: Mapping[str, Any] | None, completion_tokens: int
) -> list[str]:
    """Return the identities that a record's numbers break, each as an equation; an honest record breaks none.

    Args:
        speculative_decoding: the documented fields.
        batchspec: the fields beside them, or None in a record of another writer.
        completion_tokens: tokens of the output, of all turns together.
    """
    histogram = speculative_decoding["acceptance_histogram"]
    num_steps, num_accepted = speculative_decoding["num_spec_steps"], speculative_decoding["num_accepted_draft_tokens"]
    num_drafted, num_spec_tokens = speculative_decoding["num_draft_tokens"], speculative_decoding["num_spec_tokens"]
    checks = {
        "len(acceptance_histogram) = num_spec_tokens + 1": len(histogram) == num_spec_tokens + 1,
        "num_spec_steps = sum of acceptance_histogram": num_steps == sum(histogram),
        "num_accepted_draft_tokens = sum of j * acceptance_histogram[j]": num_accepted
        == sum(j * count for j, count in enumerate(histogram)),
        "num_accepted_draft_tokens <= num_draft_tokens": num_accepted <= num_drafted,
        "num_spec_steps <= num_draft_tokens <= num_spec_steps * num_spec_tokens": num_steps
        <= num_drafted
        <= num_steps * num_spec_tokens,
    }
    accepted, drafted = speculative_decoding.get("per_step_accepted"), speculative_decoding.get("per_step_drafted")
    if accepted is not None and drafted is not None:
        checks["per_step_accepted adds up to acceptance_histogram"] = histogram == [
            accepted.count(j) for j in range(len(histogram))
        ] and len(accepted) == sum(histogram)
        checks["per_step_drafted adds up to num_draft_tokens"] = (
            len(drafted) == num_steps and sum(drafted) == num_drafted
        )
    if batchspec is not None:
        emitted = batchspec["num_decode_steps"] + num_accepted - batchspec["num_discarded_tokens"]
        checks["completion_tokens - turns = num_decode_steps + num_accepted_draft_tokens - num_discarded_tokens"] = (
            completion_tokens - batchspec.get("num_turns", 1) == emitted
        )
    return [identity for identity, holds in checks.items() if not holds]
