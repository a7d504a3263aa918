"""The proof that a setting changed no answer: the runs' outputs beside each other, request by request."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from batchspec.compare.answers import Answer, read_answers
from batchspec.compare.texts import Divergence, find_divergence
from batchspec.files import read_records

__all__ = ["Difference", "RunOutputs", "compare_outputs"]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first request that two runs answer differently.

    Attributes:
        custom_id: of the request.
        what: differs first: text, token ids, number of tokens, finish reason, or whether there is an answer at all.
        place: where texts or token ids part.
    """

    custom_id: str | None
    what: str
    place: Divergence | None = None

    def document(self) -> dict[str, Any]:
        """Return the difference for JSON."""
        place = {} if self.place is None else self.place.document()
        return {"custom_id": self.custom_id, "what": self.what, **place}


@dataclass(kw_only=True)
class RunOutputs:
    """A run's outputs beside those of the first run.

    Attributes:
        num_compared: requests of either.
        num_with_token_ids: those whose token ids both runs tell.
        num_different: those with different answers.
        first: the first of them.
    """

    num_compared: int = 0
    num_with_token_ids: int = 0
    num_different: int = 0
    first: Difference | None = None


def compare_outputs(first: Path, second: Path) -> RunOutputs:
    """Compare the outputs of two runs, whose records are in the order of the same input.

    Texts, finish reasons and numbers of tokens are compared, and token ids where both runs tell them. Requests that
    neither run could serve are equal.

    Args:
        first: a run's directory.
        second: another's.

    Raises:
        UsageError: responses cannot be read.
    """
    found = RunOutputs()
    for number, (one, other) in enumerate(zip_longest(read_answers(str(first)), read_answers(str(second)))):
        found.num_compared += 1
        found.num_with_token_ids += _tells_ids(one) and _tells_ids(other)
        what, place = _compare(one, other)
        if what is not None:
            found.num_different += 1
            found.first = found.first or Difference(custom_id=_id((first, second), number), what=what, place=place)
    return found


def _tells_ids(answer: Answer | None) -> bool:
    outputs = () if answer is None else answer.outputs
    return bool(outputs) and all(output.token_ids is not None for output in outputs)


def _compare(one: Answer | None, other: Answer | None) -> tuple[str | None, Divergence | None]:
    """Return what differs, None for nothing, and where."""
    if one is None or other is None or bool(one.outputs) != bool(other.outputs):
        return "served", None
    place = find_divergence(one.outputs, other.outputs)
    if place is not None:
        return ("token ids" if place.character is None else "text"), place
    if one.num_tokens != other.num_tokens and None not in (one.num_tokens, other.num_tokens):
        return "number of tokens", None
    reasons = [[output.finish_reason for output in answer.outputs] for answer in (one, other)]
    return (None if reasons[0] == reasons[1] else "finish reason"), None


def _id(directories: Sequence[Path], number: int) -> str | None:
    """Return the id of a record, which only one of the runs may have."""
    for directory in directories:
        for record in islice(read_records(directory / "responses.jsonl"), number, number + 1):
            name = record.get("custom_id")
            return name if isinstance(name, str) else None
    return None
