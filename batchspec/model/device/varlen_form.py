"""How torch's variable-length attention kernel wants to be called on a device."""

from dataclasses import dataclass

__all__ = ["VarlenForm"]


@dataclass(frozen=True, kw_only=True)
class VarlenForm:
    """A way of calling it that was tried and gives right results.

    Attributes:
        page_size: smallest number of tokens in a page; multiples of it work, too.
        has_key_starts: whether the cumulative numbers of keys are to be given beside the table of pages.
    """

    page_size: int
    has_key_starts: bool
