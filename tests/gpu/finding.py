"""What a part of the check found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Finding"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A verdict, with what it rests on.

    Attributes:
        is_right: whether what was checked holds.
        lines: for the reader, one fact each.
        values: for programs.
    """

    is_right: bool
    lines: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
