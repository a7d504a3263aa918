"""Spec-Bench's answers: how many tokens each decode step gave."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.faults import RowFault, malformed
from batchspec.ingest.numbers import MAX_DRAFT, wholes
from batchspec.ingest.record import Acceptance, SkipReason

__all__ = ["read_spec_bench"]

_DERIVED = frozenset(
    {"num_spec_steps", "num_accepted_draft_tokens", "acceptance_histogram", "per_step_accepted", "num_spec_tokens"}
)


def read_spec_bench(choice: Mapping[str, Any], _body: Mapping[str, Any]) -> Acceptance | None:
    """Return what a choice's ``accept_lengths`` states; None without it.

    An entry counts the step's own token, too. Every decode step is there, and those without a draft cannot be told
    from those that accepted nothing, so all that follows is derived. What was drafted is not told.

    Raises:
        RowFault: an entry is below 1, or the answer is the ``ERROR`` that a failed turn leaves behind.
    """
    lengths = wholes(choice, "accept_lengths")
    if lengths is None:
        return None
    turns = choice.get("turns")
    if type(turns) is list and "ERROR" in turns:
        raise RowFault("a turn of the answer is ERROR", reason=SkipReason.ERROR, code="ERROR")
    if lengths and not 1 <= min(lengths) <= max(lengths) <= MAX_DRAFT + 1:
        raise malformed("accept_lengths", lengths, f"a list of integers from 1 to {MAX_DRAFT + 1}")
    accepted = [length - 1 for length in lengths]
    return Acceptance(
        num_spec_steps=len(accepted),
        num_accepted_draft_tokens=sum(accepted),
        acceptance_histogram=list(map(accepted.count, range(max(accepted, default=0) + 1))),
        per_step_accepted=accepted,
        derived=_DERIVED,
    )
