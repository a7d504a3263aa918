"""Whether the two accounts agree, and if not, whether something that is known can explain it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from batchspec.audit.gap import impossible, label
from batchspec.audit.ledger import ERROR, REFUSED, Ledger
from batchspec.audit.sheet import SheetRow
from batchspec.audit.window import Outside
from batchspec.reconcile.between import Count

__all__ = ["Outcome", "Verdict", "differences", "judge"]


class Outcome(StrEnum):
    """How the accounts stand to each other.

    EXACT: no difference.
    EXPLAINED: the difference is what named rows can have counted, or what rows outside the scrape window state.
    UNEXPLAINED: anything else.
    """

    EXACT = "exact"
    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The end of a reconciliation.

    Attributes:
        outcome: what the exit status says.
        sentences: the reasons, the verdict first.
    """

    outcome: Outcome
    sentences: tuple[str, ...]


def differences(sheet: Iterable[SheetRow]) -> dict[Count, int]:
    """Return counters minus responses, for every count that both accounts know."""
    return {row.key: -row.difference for row in sheet if row.difference is not None}


def judge(
    sheet: Sequence[SheetRow], ledger: Ledger, *, num_finished: int | None, outside: Outside | None, is_whole: bool
) -> Verdict:
    """Return the verdict.

    Args:
        sheet: both accounts.
        ledger: the responses.
        num_finished: sequences that ended between the scrapes, None when not counted.
        outside: rows without which the accounts agree, None when there are no such rows.
        is_whole: whether the unreported rows are known by their counts, so that nothing else can be missing.
    """
    gap = differences(sheet)
    if not gap:
        nothing = "NOT reconciled: no count is stated by all responses and by the counters."
        return Verdict(outcome=Outcome.UNEXPLAINED, sentences=(nothing, *_not_compared(sheet)))
    faults = [f"not in the sums: {fault}" for fault in ledger.faults]
    if not any(gap.values()) and not faults:
        return Verdict(outcome=Outcome.EXACT, sentences=(_exact(sheet), *_not_compared(sheet)))
    if outside is not None and not faults:
        return Verdict(outcome=Outcome.EXPLAINED, sentences=(_outside(outside), *_not_compared(sheet)))
    objections = _objections(gap, ledger, num_finished=num_finished, is_whole=is_whole) if any(gap.values()) else ()
    reasons = [*faults, *objections]
    if reasons:
        return Verdict(outcome=Outcome.UNEXPLAINED, sentences=(_failed(gap), *reasons, *_not_compared(sheet)))
    return Verdict(outcome=Outcome.EXPLAINED, sentences=(_carried(gap, ledger), *_not_compared(sheet)))


def _objections(gap: Mapping[Count, int], ledger: Ledger, *, num_finished: int | None, is_whole: bool) -> Iterable[str]:
    """Yield what speaks against the rows without metrics as the cause of the difference."""
    yield from _traffic(ledger, num_finished)
    impossibility = impossible(gap, num_spec_tokens=ledger.num_spec_tokens)
    if impossibility is not None:
        yield impossibility
    carriers = [] if is_whole else _carriers(ledger)
    if not carriers:
        yield "no row without metrics can have counted the difference"
        return
    tokens = [ledger.silent[cause].num_tokens for cause in carriers]
    steps = gap.get(("num_spec_steps", None), 0)
    known = [number for number in tokens if number is not None]
    if len(known) == len(tokens) and steps > sum(known):
        yield f"the rows without metrics have {sum(known):,} tokens, too few for {steps:,} steps"


def _traffic(ledger: Ledger, num_finished: int | None) -> Iterable[str]:
    """Yield whether other requests ran between the scrapes than the responses are of, as far as sequences tell."""
    if num_finished is None:
        return
    if num_finished < ledger.num_sequences:
        missing = ledger.num_sequences - num_finished
        yield f"{missing:,} of the {ledger.num_sequences:,} outputs did not end between the scrapes on these engines"
    num_failed = ledger.silent[ERROR].num_rows if ERROR in ledger.silent else 0  # may have ended, too, one each
    more = num_finished - ledger.num_sequences - num_failed
    if more > 0 and not ledger.faults:
        yield f"{more:,} sequences ended between the scrapes that are not in the responses"


def _carriers(ledger: Ledger) -> list[str]:
    return [cause for cause in ledger.silent if cause != REFUSED]


def _carried(gap: Mapping[Count, int], ledger: Ledger) -> str:
    causes = "; ".join(f"{cause}: {_listed(ledger, cause)}" for cause in _carriers(ledger))
    steps = gap.get(("num_spec_steps", None))
    size = "the difference" if steps is None else f"the {steps:,} steps that the counters have beyond the responses"
    return f"Explained: {size} can be those of the rows without metrics ({causes})."


def _listed(ledger: Ledger, cause: str) -> str:
    silent = ledger.silent[cause]
    more = silent.num_rows - len(silent.named)
    return ", ".join(silent.named) + (f" and {more:,} more" if more else "")


def _outside(outside: Outside) -> str:
    number = outside.num_before + outside.num_behind
    more = number - len(outside.named)
    names = ", ".join(outside.named) + (f" and {more:,} more" if more else "")
    again = f"; ids of {outside.num_repeated:,} of them stand in it, too" if outside.num_repeated else ""
    return (
        f"Explained: without {number:,} rows outside the scrape window ({outside.num_before:,} before it, "
        f"{outside.num_behind:,} behind it: {names}{again}) every total agrees exactly."
    )


def _exact(sheet: Sequence[SheetRow]) -> str:
    number = sum(row.difference is not None for row in sheet)
    return f"Reconciled: all {number} totals agree exactly, zero differences."


def _failed(gap: Mapping[Count, int]) -> str:
    differing = [label(key) for key, count in gap.items() if count]
    if not differing:
        return f"NOT reconciled: all {len(gap)} totals agree, but without rows that could not be added up."
    return f"NOT reconciled: {len(differing)} of {len(gap)} totals differ ({', '.join(differing)})."


def _not_compared(sheet: Iterable[SheetRow]) -> Iterable[str]:
    """Yield the counts that one side does not have."""
    names = [label(row.key) for row in sheet if row.difference is None]
    if names:
        yield f"Not compared, as one of the two sides does not state it: {', '.join(names)}."
