"""Neighbours' files to batch lines, each with an id that no other has."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial

from batchspec.convert.asked import Asked, batch_line
from batchspec.convert.converting import Conversion, Converted, as_object
from batchspec.convert.entries import split_entries
from batchspec.convert.plain_text import text_line
from batchspec.convert.sharegpt import sharegpt_conversation
from batchspec.convert.spec_bench import spec_bench_question
from batchspec.errors import UsageError
from batchspec.files.lines import split_lines
from batchspec.files.seen import SeenIds
from batchspec.files.source import InputSource, Row

__all__ = ["ForeignFormat", "to_batch_lines"]


class ForeignFormat(StrEnum):
    """What can be turned into batch lines."""

    SPEC_BENCH = "spec-bench"
    SHAREGPT = "sharegpt"
    TEXT = "text"


def to_batch_lines(
    source: InputSource,
    form: ForeignFormat,
    *,
    seen: SeenIds,
    is_first_turn: bool,
    is_chat: bool,
    say: Callable[[str], None],
) -> Conversion:
    """Return the conversion of a neighbour's file.

    Args:
        source: the file.
        form: what it holds.
        seen: the ids given so far.
        is_first_turn: ask only the first turn of a conversation.
        is_chat: ask lines of text as chats.
        say: as in ``Conversion``.

    Raises:
        UsageError: lines of text are asked of a Parquet file, or spec-bench of an array (raised where it is read).
    """
    if form is ForeignFormat.TEXT and source.is_parquet:
        raise UsageError(f"{source.path} is Parquet and has no lines of text: give it to batchspec run as it is")
    is_array = form is ForeignFormat.SHAREGPT and not source.is_parquet
    unit = "entry" if is_array else source.unit

    def asked(row: Row) -> Asked:
        if form is ForeignFormat.TEXT:
            return text_line(row, is_chat=is_chat)
        if form is ForeignFormat.SPEC_BENCH and _opens_array(row):
            raise UsageError(f"{source.path} is an array, spec-bench means one object a line: try --from sharegpt")
        question = spec_bench_question if form is ForeignFormat.SPEC_BENCH else sharegpt_conversation
        return question(as_object(row), number=row[0], is_first_turn=is_first_turn)

    def convert(row: Row) -> Converted:
        request = asked(row)
        place = f"{unit}-{row[0]}"
        wanted = request.custom_id or place
        custom_id = _unused(wanted, place, row[0], seen)
        line = batch_line(request, custom_id=custom_id)
        return Converted(line=line, is_renamed=custom_id != wanted, left_out=request.left_out)

    rows = source.rows(split_entries if is_array else split_lines)
    return Conversion(rows, convert, where=partial(source.where, unit="entry" if is_array else None), say=say)


def _opens_array(row: Row) -> bool:
    number, data = row
    return number == 1 and isinstance(data, bytes) and data.lstrip().startswith(b"[")


def _unused(custom_id: str, place: str, number: int, seen: SeenIds) -> str:
    """Return the id, with the row's place behind it if an earlier row has it."""
    while seen.first_line(custom_id, line=number) != number:
        custom_id = f"{custom_id}-{place}"
    return custom_id
