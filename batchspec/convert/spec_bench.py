"""Spec-Bench's and MT-Bench's ``question.jsonl``: a question, or a conversation of several, with its category."""

from collections.abc import Mapping
from typing import Any

from batchspec.convert.asked import Asked, given_id, left_out
from batchspec.errors import RequestError
from batchspec.files.fields import required
from batchspec.files.identity import read_category
from batchspec.files.prompts import parse_turns

__all__ = ["spec_bench_question"]


def spec_bench_question(row: Mapping[str, Any], *, number: int, is_first_turn: bool) -> Asked:
    """Return what ``{"question_id", "category", "turns", "reference"}`` asks; the reference answer is left out.

    Args:
        row: the question.
        number: its line.
        is_first_turn: ask only the first turn.

    Raises:
        RequestError: the row has no turns, or its id, category or a turn is of the wrong type.
    """
    if row.get("turns") is None and row.get("conversations") is not None:
        raise RequestError('the row has "conversations" and no "turns": try --from sharegpt', param="turns")
    if row.get("turns") is None:
        raise required(row, "turns", "an array of strings", code="missing_required_parameter")
    first, others = parse_turns(row["turns"])
    turns = (first.messages[0]["content"], *others)
    return Asked(
        custom_id=given_id(row, "question_id", number=number),
        category=read_category(row),
        turns=turns[:1] if is_first_turn else turns,
        left_out=left_out(row, "question_id", "category", "turns"),
    )
