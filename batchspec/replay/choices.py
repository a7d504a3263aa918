"""The choices of a response, and what is raised where a row cannot be replayed."""

from collections.abc import Mapping
from typing import Any, NoReturn

from batchspec.replay.recorded import Cause

__all__ = ["Unfit", "choices_of", "malformed"]


class Unfit(Exception):
    """A row cannot be replayed.

    Args:
        cause: what is missing.
    """

    def __init__(self, cause: Cause):
        super().__init__(cause)
        self.cause = cause


def choices_of(body: Any) -> list[Mapping[str, Any]]:
    """Return the choices of a response in the order of their numbers.

    Raises:
        Unfit: there are none.
    """
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        malformed()
    if not all(isinstance(choice.get("index", 0), int) for choice in choices):
        malformed()
    return sorted(choices, key=lambda choice: choice.get("index", 0))


def malformed() -> NoReturn:
    """Say that the row is not a response."""
    raise Unfit(Cause.MALFORMED)
