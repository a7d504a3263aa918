"""From one response to its records: one for the whole, or one for each choice where choices speak for themselves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.ingest.faults import RowFault
from batchspec.ingest.identities import check_identities
from batchspec.ingest.places import IN_CHOICE, IN_RESPONSE, LAST_RESORT, find_acceptance
from batchspec.ingest.record import Acceptance, LogRecord, SkippedRow
from batchspec.ingest.tokens import choice_tokens, completion_tokens, prompt_tokens

__all__ = ["Entry", "Envelope", "read_response", "skipped"]

Entry = LogRecord | SkippedRow
_MARKS = frozenset(
    {"choices", "usage", "outputs", "meta_info", "timings", "stats", "metrics", "perf_metrics", "content", "text"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Envelope:
    """What is known of a row before its response is read; attributes as in ``LogRecord``."""

    path: str
    line: int
    custom_id: str | None = None
    category: str | None = None


def skipped(envelope: Envelope, fault: RowFault) -> SkippedRow:
    """Return the row that a fault leaves out."""
    return SkippedRow(
        path=envelope.path,
        line=envelope.line,
        reason=fault.reason,
        message=fault.message,
        custom_id=envelope.custom_id,
        category=envelope.category,
        code=fault.code,
    )


def read_response(body: Mapping[str, Any], envelope: Envelope) -> list[Entry]:
    """Return the records of one response, or what leaves it out.

    Args:
        body: a response, or a stream's chunks merged into one.
        envelope: the row that it stands in.
    """
    choices = body.get("choices") or body.get("outputs") or ()
    choices = [choice for choice in choices if type(choice) is dict] if type(choices) is list else []
    try:
        found = find_acceptance(IN_RESPONSE, body)
        tokens = completion_tokens(body)
        if found is None:
            by_choice = _by_choice(body, choices, envelope, tokens=tokens)
            if by_choice:
                return by_choice
            found = find_acceptance(LAST_RESORT, body)
        if found is None and _MARKS.isdisjoint(body):
            raise RowFault('the row is no response: it has none of the fields "response", "choices" and "usage"')
        return [_record(body, envelope, found, tokens=tokens, num_choices=len(choices) or 1)]
    except RowFault as fault:
        return [skipped(envelope, fault)]


def _by_choice(
    body: Mapping[str, Any], choices: list[dict[str, Any]], envelope: Envelope, *, tokens: int | None
) -> list[Entry]:
    """Return an entry for each choice, or none if no choice speaks of drafts; a fault leaves out that choice alone."""
    entries: list[Entry] = []
    is_told = False
    for index, choice in enumerate(choices):
        try:
            found = find_acceptance(IN_CHOICE, choice)
            is_told |= found is not None
            own = choice_tokens(choice, of_response=tokens, num_choices=len(choices))
            entries.append(_record(body, envelope, found, tokens=own, num_choices=len(choices), choice=index))
        except RowFault as fault:
            is_told = True
            entries.append(skipped(envelope, fault))
    return entries if is_told else []


def _record(
    body: Mapping[str, Any],
    envelope: Envelope,
    found: tuple[str, Acceptance] | None,
    *,
    tokens: int | None,
    num_choices: int,
    choice: int | None = None,
) -> LogRecord:
    engine, acceptance = found or ("unknown", None)
    if acceptance is not None:
        check_identities(acceptance, completion_tokens=tokens)
        if acceptance.num_decode_steps is not None:
            engine = "batchspec"
    return LogRecord(
        path=envelope.path,
        line=envelope.line,
        engine=engine,
        custom_id=envelope.custom_id,
        category=envelope.category,
        model=_text(body.get("model")),
        choice=choice,
        num_choices=num_choices,
        prompt_tokens=prompt_tokens(body),
        completion_tokens=tokens,
        acceptance=acceptance,
    )


def _text(value: Any) -> str | None:
    return value if type(value) is str else None
