"""Per-request acceptance metrics: a recorder of integers, and the document made from them.

The shape and meaning follow the vLLM documentation page "Per-Request Acceptance Metrics". A level creates a
recorder of its own kind; level ``none`` creates none, and the hot loop only tests for its absence.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

__all__ = ["AcceptanceRecorder", "DetailedRecorder", "Level", "make_recorder", "sum_recorders"]


class Level(StrEnum):
    """How much is recorded for each request."""

    NONE = "none"
    SUMMARY = "summary"
    DETAILED = "detailed"


class AcceptanceRecorder:
    """Counts one request's verification steps; integers only, ratios are made where they are printed.

    Args:
        num_spec_tokens: the configured k, which fixes the histogram's length at k + 1.
    """

    __slots__ = (
        "acceptance_histogram",
        "num_decode_steps",
        "num_discarded_tokens",
        "num_draft_tokens",
        "num_spec_tokens",
    )

    def __init__(self, *, num_spec_tokens: int):
        self.num_spec_tokens = num_spec_tokens
        self.acceptance_histogram = [0] * (num_spec_tokens + 1)
        self.num_draft_tokens = 0
        self.num_decode_steps = 0
        self.num_discarded_tokens = 0

    def record(self, *, num_drafted: int, num_accepted: int, num_emitted: int, position: int) -> None:
        """Record one decode step; with no draft it counts only as a decode step.

        Args:
            num_drafted: draft tokens that were verified in this step, 0 for a plain decode step.
            num_accepted: leading draft tokens that the verifier matched, before stop handling.
            num_emitted: tokens that the step committed to the output, after stop handling.
            position: number of output tokens that stood before this step.
        """
        self.num_decode_steps += 1
        self.num_discarded_tokens += num_accepted + 1 - num_emitted
        if num_drafted:
            self.acceptance_histogram[num_accepted] += 1
            self.num_draft_tokens += num_drafted
            self._record_step(num_drafted=num_drafted, num_accepted=num_accepted, position=position)

    def _record_step(self, *, num_drafted: int, num_accepted: int, position: int) -> None:
        """Keep the step's own numbers; the summary keeps none."""

    @property
    def num_spec_steps(self) -> int:
        """Verification steps: decode steps that had at least one draft token."""
        return sum(self.acceptance_histogram)

    @property
    def num_accepted_draft_tokens(self) -> int:
        """Draft tokens that the verifier matched."""
        return sum(j * count for j, count in enumerate(self.acceptance_histogram))

    def speculative_decoding(self) -> dict[str, Any]:
        """Return the ``metrics.speculative_decoding`` document, keys in the documented order, floats unrounded."""
        num_steps, num_accepted = self.num_spec_steps, self.num_accepted_draft_tokens
        return {
            "mean_acceptance_length": 1 + num_accepted / num_steps if num_steps else 1.0,
            "draft_acceptance_rate": num_accepted / self.num_draft_tokens if self.num_draft_tokens else 0.0,
            "acceptance_histogram": list(self.acceptance_histogram),
            "num_spec_steps": num_steps,
            "num_accepted_draft_tokens": num_accepted,
            "num_draft_tokens": self.num_draft_tokens,
            "num_spec_tokens": self.num_spec_tokens,
        }

    def emitted(self, *, completion_tokens: int, num_first_tokens: int = 1) -> dict[str, Any]:
        """Return the ``metrics.batchspec`` document: the honest length, from tokens that reached the output.

        Args:
            completion_tokens: tokens of the finished output.
            num_first_tokens: tokens that came from a prefill, one for each turn.
        """
        num_steps = self.num_decode_steps
        return {
            "num_decode_steps": num_steps,
            "num_discarded_tokens": self.num_discarded_tokens,
            "tokens_per_decode_step": (completion_tokens - num_first_tokens) / num_steps if num_steps else None,
        }

    def absorb(self, other: "AcceptanceRecorder") -> None:
        """Add the counts of another recorder with the same k, as for the next turn of a conversation."""
        if other.num_spec_tokens != self.num_spec_tokens:
            raise ValueError(
                f"cannot add counts for k = {other.num_spec_tokens} to counts for k = {self.num_spec_tokens}"
            )
        for j, count in enumerate(other.acceptance_histogram):
            self.acceptance_histogram[j] += count
        self.num_draft_tokens += other.num_draft_tokens
        self.num_decode_steps += other.num_decode_steps
        self.num_discarded_tokens += other.num_discarded_tokens


class DetailedRecorder(AcceptanceRecorder):
    """Also keeps every verification step, in order, with the output position at which it began."""

    __slots__ = ("per_step_accepted", "per_step_drafted", "per_step_position")

    def __init__(self, *, num_spec_tokens: int):
        super().__init__(num_spec_tokens=num_spec_tokens)
        self.per_step_accepted: list[int] = []
        self.per_step_drafted: list[int] = []
        self.per_step_position: list[int] = []

    def _record_step(self, *, num_drafted: int, num_accepted: int, position: int) -> None:
        self.per_step_accepted.append(num_accepted)
        self.per_step_drafted.append(num_drafted)
        self.per_step_position.append(position)

    def speculative_decoding(self) -> dict[str, Any]:
        """Return the document of the summary with the two per-step lists behind it."""
        lists = {"per_step_accepted": list(self.per_step_accepted), "per_step_drafted": list(self.per_step_drafted)}
        return super().speculative_decoding() | lists

    def emitted(self, *, completion_tokens: int, num_first_tokens: int = 1) -> dict[str, Any]:
        """Return the document of the summary with the output position at which each verification step began."""
        document = super().emitted(completion_tokens=completion_tokens, num_first_tokens=num_first_tokens)
        return document | {"per_step_position": list(self.per_step_position)}

    def absorb(self, other: AcceptanceRecorder) -> None:
        """Add the counts and append the steps of another detailed recorder."""
        super().absorb(other)
        if isinstance(other, DetailedRecorder):
            self.per_step_accepted += other.per_step_accepted
            self.per_step_drafted += other.per_step_drafted
            self.per_step_position += other.per_step_position


def make_recorder(*, level: Level, num_spec_tokens: int) -> AcceptanceRecorder | None:
    """Return the recorder that the level asks for; None for ``Level.NONE``."""
    if level is Level.NONE:
        return None
    kind = DetailedRecorder if level is Level.DETAILED else AcceptanceRecorder
    return kind(num_spec_tokens=num_spec_tokens)


def sum_recorders(recorders: Sequence[AcceptanceRecorder]) -> AcceptanceRecorder | None:
    """Return a new recorder holding the sum, detailed if the first one is; None for an empty sequence."""
    if not recorders:
        return None
    total = type(recorders[0])(num_spec_tokens=recorders[0].num_spec_tokens)
    for recorder in recorders:
        total.absorb(recorder)
    return total
