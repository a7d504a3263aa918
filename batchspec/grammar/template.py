"""A compiled grammar at its beginning, from which every sequence takes a copy."""

from typing import TYPE_CHECKING

from batchspec.grammar.wording import one_line

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

__all__ = ["Template"]


class Template:
    """What sequences with the same grammar share.

    Copies share the lexer, which remembers every state it was ever in and has a limit for their number. So a
    long-lived grammar can reach the limit through no fault of the sequence that does; ``renew`` forgets the states.

    Args:
        source: the grammar in llguidance's JSON form.
        tokenizer: the model's vocabulary.
        limits: llguidance's limits; None for its own.

    Raises:
        ValueError: it cannot be compiled, or no text follows it; the message says why.
    """

    def __init__(self, source: str, *, tokenizer: "LLTokenizer", limits: "LLParserLimits | None"):
        from llguidance import LLParserLimits

        self.tokenizer = tokenizer
        self.eos_ids = frozenset(tokenizer.eos_tokens)
        self._source = source
        self._limits = LLParserLimits(verbose_errors=False) if limits is None else limits
        self.renew()
        self._check()

    def copy(self) -> "LLMatcher":
        """Return a matcher at the beginning, of the caller's own."""
        return self._matcher.deep_copy()

    def renew(self) -> None:
        """Compile again, for this and later copies."""
        from llguidance import LLMatcher

        self._matcher: LLMatcher = LLMatcher(self.tokenizer, self._source, log_level=0, limits=self._limits)

    def _check(self) -> None:
        """Raise ValueError for what does not compile, what llguidance would ignore, and what no text follows."""
        ignored = self._matcher.get_grammar_warnings()
        start = self.copy()
        start.compute_bitmask()
        if self._matcher.is_error():
            raise ValueError(one_line(self._matcher.get_error()))
        if ignored:
            raise ValueError(one_line(" ".join(ignored)))
        if start.is_error():
            raise ValueError(one_line(start.get_error()))
