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
        """Return how many leading tokens the masks from here on would allow, one behind the other; nothing changes.

        The end of the sequence counts where the output may end, and nothing behind it. Ids outside the vocabulary
        never count, nor does another spelling of text that is forced: the mask names its usual tokens only.
        """
        if self.has_failed or self.has_ended:
            return 0
        num_text = next((i for i, token in enumerate(token_ids) if not self._is_text(token)), len(token_ids))
        num_valid = 0 if self.matcher.is_stopped() else self._num_usual(token_ids[:num_text])
        if self.matcher.is_error():
            self.rebuild()
            return 0
        if num_valid < num_text or num_text == len(token_ids) or token_ids[num_text] not in self.eos_ids:
            return num_valid
        return num_valid + self._may_end_behind(token_ids[:num_valid])

    def _is_text(self, token: int) -> bool:
        return 0 <= token < self.num_vocabulary and token not in self.eos_ids

    def _num_usual(self, token_ids: list[int]) -> int:
        """Return how many leading tokens are allowed and, where text is forced, its usual tokens."""
        num_allowed = self.matcher.validate_tokens(token_ids) if token_ids else 0
        num_usual = 0
        for token in token_ids[:num_allowed]:
            forced = self.matcher.compute_ff_tokens()
            if self.matcher.is_error() or (forced and forced[0] != token) or not self.matcher.consume_token(token):
                break
            num_usual += 1
        if num_usual and not self.matcher.is_error():
            self.matcher.rollback(num_usual)
        return num_usual

    def _may_end_behind(self, token_ids: list[int]) -> bool:
        """Whether the output is complete behind these tokens, all of them allowed."""
        matcher = self.matcher.deep_copy()
        return (not token_ids or matcher.consume_tokens(token_ids)) and matcher.is_accepting()

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
        if self.has_failed or self.has_ended or self.matcher.is_stopped():
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

    def _fail_with(self, matcher: "LLMatcher") -> None:
        if matcher.is_error():
            self._error = one_line(matcher.get_error())
