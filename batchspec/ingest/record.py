"""One response of any engine in neutral terms, and what a row is called that gives none.

A number that an engine does not state is absent (None), never zero and never a guess that looks like a count. Numbers
that were computed or that may be wrong are named by their origin, so that whoever adds them up can tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Acceptance", "LogRecord", "Origin", "SkipReason", "SkippedRow"]


class Origin(StrEnum):
    """Where a number is from.

    EXACT: the engine counted it and says so.
    DERIVED: follows from counted numbers by an identity, or by the engine's own rule where that holds.
    ESTIMATED: may be wrong; never to be added to counted numbers without saying so.
    ABSENT: not told.
    """

    EXACT = "exact"
    DERIVED = "derived"
    ESTIMATED = "estimated"
    ABSENT = "absent"


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """What one response says about its drafts; names and meanings as in ``metrics.speculative_decoding``.

    Where several of these numbers are exact or derived they agree with each other: a row that contradicts itself gives
    a ``SkippedRow`` and no record.

    Attributes:
        num_spec_steps: verification steps.
        num_draft_tokens: draft tokens proposed in these steps.
        num_accepted_draft_tokens: draft tokens matched; the target's own next token is not counted.
        num_spec_tokens: the configured k, the longest draft.
        acceptance_histogram: entry j: steps that accepted exactly j draft tokens. (k + 1,), or shorter where the engine
            lets it grow; never made from totals.
        per_step_accepted: (num_spec_steps,) draft tokens matched in each step, in order.
        per_step_drafted: (num_spec_steps,) length of each step's draft.
        per_step_position: (num_spec_steps,) output tokens that stood before each step.
        num_drafted_per_position: entry i: steps whose draft was longer than i, where the engine tells that and no
            per-step lengths.
        num_decode_steps: decode steps with or without a draft.
        num_discarded_tokens: matched or next tokens that a stop cut off.
        num_turns: tokens of the output that came from a prefill, one for each turn of a conversation.
        stated_length: the engine's own length where it is defined otherwise than 1 + accepted / steps (SGLang's
            ``spec_accept_length``, TensorRT-LLM's ``avg_decoded_tokens_per_iter``), in tokens.
        derived: names of the fields above that are derived.
        estimated: names of the fields above that are estimated.
    """

    num_spec_steps: int | None = None
    num_draft_tokens: int | None = None
    num_accepted_draft_tokens: int | None = None
    num_spec_tokens: int | None = None
    acceptance_histogram: Sequence[int] | None = None
    per_step_accepted: Sequence[int] | None = None
    per_step_drafted: Sequence[int] | None = None
    per_step_position: Sequence[int] | None = None
    num_drafted_per_position: Sequence[int] | None = None
    num_decode_steps: int | None = None
    num_discarded_tokens: int | None = None
    num_turns: int = 1
    stated_length: float | None = None
    derived: frozenset[str] = frozenset()
    estimated: frozenset[str] = frozenset()

    def origin(self, field: str) -> Origin:
        """Return where the number of a field is from; ABSENT exactly when it is None."""
        if getattr(self, field) is None:
            return Origin.ABSENT
        if field in self.estimated:
            return Origin.ESTIMATED
        return Origin.DERIVED if field in self.derived else Origin.EXACT


@dataclass(frozen=True, kw_only=True, slots=True)
class LogRecord:
    """One served response, whoever wrote it; a choice of its own where the engine states acceptance by choice.

    Attributes:
        path: the log, as it was named; ``-`` is standard input.
        line: 1-based line or Parquet row, of a streamed response where it began.
        engine: whose shape the acceptance has, such as ``vllm`` or ``llama.cpp``; ``unknown`` without acceptance.
        custom_id: the batch line's id; where there is none, the body's.
        category: the row's ``category``.
        model: as the body names it.
        choice: index of the choice; None where the record is about the whole response.
        num_choices: choices of the response (n times its prompts, where that is more than one).
        prompt_tokens: from the body's usage.
        completion_tokens: of this record's output, all turns together; None where it is not told for this choice alone.
        acceptance: None where the response states none (null in the body, several samples, speculation off).
    """

    path: str
    line: int
    engine: str
    custom_id: str | None = None
    category: str | None = None
    model: str | None = None
    choice: int | None = None
    num_choices: int = 1
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    acceptance: Acceptance | None = None


class SkipReason(StrEnum):
    """Why a row gives no record.

    ERROR: the request was not served; the row says so.
    MALFORMED: not JSON, not an object, or a number of the wrong type, sign or place.
    CONTRADICTION: its counts break an identity, such as steps = sum of the histogram.
    """

    ERROR = "error"
    MALFORMED = "malformed"
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedRow:
    """A row, or one choice of it, that is left out of every sum.

    Attributes:
        path: the log, as it was named.
        line: 1-based line or row.
        reason: the kind of fault.
        message: one sentence that names field and value, without path and line.
        custom_id: as in ``LogRecord``, where it could be read.
        category: the row's ``category``, where it could be read.
        code: the error's code, or the HTTP status; None unless the reason is ERROR.
    """

    path: str
    line: int
    reason: SkipReason
    message: str
    custom_id: str | None = None
    category: str | None = None
    code: str | None = None
