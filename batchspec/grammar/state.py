"""How far one sequence has come in its grammar."""

from collections.abc import Sequence as Many
from typing import TYPE_CHECKING

from batchspec.grammar.template import Template
from batchspec.grammar.wording import one_line

if TYPE_CHECKING:
    from llguidance import LLMatcher

__all__ = ["LLGrammar"]


class LLGrammar:
    """Fits ``batchspec.sequence.Grammar``.

    An error of llguidance is final for the matcher that meets it, and it can meet one while it looks ahead at draft
    tokens that are never emitted, or in a lexer that other sequences have filled. The output must not depend on
    either, so an error counts only when a freshly compiled grammar meets it behind the same tokens.

    Behind an end-of-sequence token only such tokens are allowed, whatever the grammar.

    Args:
        template: the compiled grammar.
    """

    def __init__(self, template: Template):
        self.matcher: LLMatcher = template.copy()
        self.eos_ids = template.eos_ids
        self.num_vocabulary: int = template.tokenizer.vocab_size
        self.has_ended = False
        self._template = template
        self._accepted: list[int] = []
        self._error: str | None = None
        self._is_in_doubt = False

    @property
    def error(self) -> str | None:
        """Why the grammar can say no more, on one line; None as long as it can."""
        if self._is_in_doubt and self._error is None:
            probe = self.fresh()
            probe.compute_bitmask()
            self._fail_with(probe)
        return self._error

    @property
    def has_failed(self) -> bool:
        """Whether ``error`` is known to be there; asking this never compiles."""
        return self._error is not None

    def num_valid(self, token_ids: list[int]) -> int:
        """Return how many leading tokens the grammar allows from here; nothing changes.

        End-of-sequence tokens count where the output may end; ids outside the vocabulary never do. Where the next
        text is forced, every spelling of it counts, while the mask names its usual tokens only.
        """
        if self.has_failed:
            return 0
        num_known = next((i for i, token in enumerate(token_ids) if not 0 <= token < self.num_vocabulary), None)
        known = token_ids[:num_known]
        num_valid = 0
        if known and not self._allows_only_eos:
            num_valid = self.matcher.validate_tokens(known)
            if self.matcher.is_error():
                self.rebuild()
                return 0
        if self._allows_only_eos or (num_valid and known[num_valid - 1] in self.eos_ids):
            while num_valid < len(known) and known[num_valid] in self.eos_ids:
                num_valid += 1
        return num_valid

    def accept(self, token_id: int) -> None:
        """Advance behind a token that was emitted; one that is not allowed becomes the ``error``."""
        if self.has_ended or self.has_failed:
            return
        if token_id in self.eos_ids and self.matcher.is_accepting():
            self.has_ended = True
            return
        self._accepted.append(token_id)
        if not self.matcher.consume_token(token_id):
            self.rebuild()

    def forced(self) -> list[int]:
        """Return the usual tokens of the bytes that must come next; empty where the grammar leaves a choice."""
        if self.has_failed or self._allows_only_eos:
            return []
        token_ids = self.matcher.compute_ff_tokens()
        if self.matcher.is_error():
            self.rebuild()
            return []
        return token_ids

    def rebuild(self) -> None:
        """Replace a matcher that met an error by a fresh one behind the emitted tokens."""
        self._is_in_doubt = True
        self.matcher = self.fresh()
        self._fail_with(self.matcher)

    def fresh(self, ahead: Many[int] = ()) -> "LLMatcher":
        """Return a freshly compiled matcher behind the emitted tokens and those ahead of them; maybe in error."""
        self._template.renew()
        matcher = self._template.copy()
        matcher.consume_tokens([*self._accepted, *ahead])
        return matcher

    @property
    def _allows_only_eos(self) -> bool:
        """Whether the output is complete and cannot grow; a matcher in error was replaced."""
        return self.has_ended or self.matcher.is_stopped()

    def _fail_with(self, matcher: "LLMatcher") -> None:
        if matcher.is_error():
            self._error = one_line(matcher.get_error())
