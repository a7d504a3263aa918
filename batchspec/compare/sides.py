"""The numbers of one run, request by request."""

from dataclasses import dataclass, field
from itertools import zip_longest

from batchspec.errors import UsageError
from batchspec.files.wording import beginning, shown
from batchspec.ingest import Acceptance, LogRecord, Origin, SkippedRow, SkipReason, read_logs
from batchspec.report.positions import survivors

__all__ = ["Numbers", "Side", "read_side"]

_MAX_NAMED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """What one response states; None where it does not, or only estimates it.

    Attributes:
        line: where it stands in its file.
        category: as the row names it.
        steps: verification steps.
        drafted: draft tokens.
        accepted: draft tokens matched.
        accepted_at: (k,) steps that accepted the token at each position.
        emitted: tokens of the output that came from decode steps.
        decode_steps: steps with or without a draft.
    """

    line: int
    category: str | None = None
    steps: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    accepted_at: tuple[int, ...] | None = None
    emitted: int | None = None
    decode_steps: int | None = None


@dataclass(kw_only=True)
class Side:
    """One run.

    Attributes:
        path: file or run directory.
        requests: what was served, by id.
        failed: sentence of every row that was not served, by id.
        repeated: ids of rows that were not served, but of which another row was.
        left_out: ids of rows whose metrics contradict each other, or that cannot be read.
        sentences: of the first rows that are left out, with file and line.
        num_left_out: all of these rows, those without an id included.
        num_without_id: rows that cannot be paired.
    """

    path: str
    requests: dict[str, Numbers] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    sentences: list[str] = field(default_factory=list)
    num_left_out: int = 0
    num_without_id: int = 0


def read_side(path: str) -> Side:
    """Return the numbers of a run; memory grows by a few hundred bytes for each request.

    Raises:
        UsageError: the file cannot be read, or two served rows of it have one id.
    """
    side = Side(path=path)
    lines: dict[str, int] = {}
    for row in read_logs([path]):
        is_left_out = isinstance(row, SkippedRow) and row.reason is not SkipReason.ERROR
        if isinstance(row, SkippedRow) and is_left_out:
            _leave_out(side, row)
        if row.custom_id is None:
            side.num_without_id += not is_left_out
        elif isinstance(row, SkippedRow) and not is_left_out:
            side.failed.setdefault(row.custom_id, row.message)
        else:
            first = lines.setdefault(row.custom_id, row.line)
            if first != row.line:
                raise UsageError(
                    f"{path} has the id {shown(row.custom_id)} in line {first} and in line {row.line}: requests are "
                    "paired by id, so give each one of its own"
                )
            if isinstance(row, LogRecord):
                _add(side.requests, row)
    for custom_id in side.left_out:
        side.requests.pop(custom_id, None)
    side.repeated = side.failed.keys() & lines.keys()
    for custom_id in side.repeated:
        del side.failed[custom_id]
    return side


def _leave_out(side: Side, row: SkippedRow) -> None:
    """Name a row that cannot be believed, or count it when many are named already."""
    side.num_left_out += 1
    if len(side.sentences) < _MAX_NAMED:
        name = "" if row.custom_id is None else f" ({beginning(row.custom_id)})"
        side.sentences.append(f"{row.path} line {row.line}{name} is left out: {row.message}")
    if row.custom_id is not None:
        side.left_out.add(row.custom_id)


def _add(requests: dict[str, Numbers], row: LogRecord) -> None:
    """Add a response, or one choice to those before it."""
    assert row.custom_id is not None
    numbers = _numbers(row)
    earlier = requests.get(row.custom_id)
    requests[row.custom_id] = numbers if earlier is None else _sum(earlier, numbers)


def _numbers(row: LogRecord) -> Numbers:
    acceptance = row.acceptance
    if acceptance is None:
        return Numbers(line=row.line, category=row.category)
    is_counted = acceptance.origin("acceptance_histogram") in (Origin.EXACT, Origin.DERIVED)
    histogram = acceptance.acceptance_histogram if is_counted else None
    decode_steps = _counted(acceptance, "num_decode_steps")
    knows_emitted = decode_steps is not None and row.completion_tokens is not None
    return Numbers(
        line=row.line,
        category=row.category,
        steps=_counted(acceptance, "num_spec_steps"),
        drafted=_counted(acceptance, "num_draft_tokens"),
        accepted=_counted(acceptance, "num_accepted_draft_tokens"),
        accepted_at=None if histogram is None else tuple(survivors(histogram)),
        emitted=(row.completion_tokens or 0) - acceptance.num_turns if knows_emitted else None,
        decode_steps=decode_steps,
    )


def _counted(acceptance: Acceptance, name: str) -> int | None:
    """Return the value of a field, None where it is absent or estimated."""
    value: int | None = getattr(acceptance, name)
    return None if acceptance.origin(name) is Origin.ESTIMATED else value


def _sum(one: Numbers, other: Numbers) -> Numbers:
    """Return the numbers of two choices together; what one of them does not state is not known."""

    def total(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    at_one, at_other = one.accepted_at, other.accepted_at
    is_known = at_one is not None and at_other is not None
    pairs = zip_longest(at_one or (), at_other or (), fillvalue=0)
    return Numbers(
        line=one.line,
        category=one.category,
        steps=total(one.steps, other.steps),
        drafted=total(one.drafted, other.drafted),
        accepted=total(one.accepted, other.accepted),
        accepted_at=tuple(a + b for a, b in pairs) if is_known else None,
        emitted=total(one.emitted, other.emitted),
        decode_steps=total(one.decode_steps, other.decode_steps),
    )
