"""How a grammar follows its sequence, and what becomes of errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLParserLimits

from batchspec.grammar import GrammarCompiler, byte_tokenizer, tokenizer_of
from batchspec.params import StructuredOutput

from .driving import EOS, compiler_over_bytes, rows_of

A, B = b"ab"


@given(drafts=st.lists(st.lists(st.integers(-2, 300), max_size=5), max_size=5), text=st.text("ab", max_size=4))
def test_asking_changes_nothing(drafts: list[list[int]], text: str) -> None:
    compiler = compiler_over_bytes()
    asked, left = (compiler.compile(StructuredOutput(regex="(a|b)*aba(a|bbb)?")) for _ in range(2))
    for token in text.encode():
        for draft in drafts:
            asked.num_valid(draft)
            asked.forced()
        asked.accept(token)
        left.accept(token)
        assert rows_of(compiler, asked, [A, B, A]) == rows_of(compiler, left, [A, B, A])
        assert asked.forced() == left.forced()
    assert asked.error is None
    compiler.close()


def test_forced_tokens_up_to_the_next_choice() -> None:
    grammar = compiler_over_bytes().compile(StructuredOutput(regex="(abc|abd)ef"))
    assert bytes(grammar.forced()) == b"ab"
    for token in b"abd":
        grammar.accept(token)
    assert bytes(grammar.forced()) == b"ef"
    for token in b"ef":
        grammar.accept(token)
    assert grammar.forced() == []
    grammar.accept(EOS)
    assert grammar.forced() == []
    assert grammar.error is None


def test_the_end_can_be_accepted_again_and_again() -> None:
    compiler = compiler_over_bytes()
    for regex, text in [("ab", b"ab"), ("a+", b"a"), ("", b"")]:
        grammar = compiler.compile(StructuredOutput(regex=regex))
        for token in [*text, EOS, EOS]:
            grammar.accept(token)
        assert grammar.error is None
        assert rows_of(compiler, grammar, [EOS]) == [{EOS}, {EOS}]
        assert grammar.num_valid([EOS, EOS, A]) == 0
    compiler.close()


@pytest.mark.parametrize(
    ("emitted", "reason"), [(b"b", "doesn't satisfy the grammar"), ([EOS], "grammar"), (b"ac", "c")]
)
def test_a_token_that_is_not_allowed_is_an_error_and_then_nothing_is(emitted: list[int], reason: str) -> None:
    compiler = compiler_over_bytes()
    grammar = compiler.compile(StructuredOutput(regex="ab"))
    for token in emitted:
        grammar.accept(token)
    assert grammar.error is not None
    assert reason in grammar.error
    assert "\n" not in grammar.error
    assert rows_of(compiler, grammar, [A]) == [set(), set()]
    assert grammar.num_valid([A]) == grammar.num_valid([EOS]) == 0
    assert grammar.forced() == []
    compiler.close()


def test_a_dead_end_forbids_everything_and_says_so() -> None:
    """The vocabulary has no c."""
    tokens = [b"a", b"b", b"<end>"]
    compiler = GrammarCompiler(lambda: tokenizer_of(tokens, eos_ids=[2], encode=lambda text: [0] * len(text)))
    stuck = compiler.compile(StructuredOutput(regex="aa[cd]|ab"))
    assert rows_of(compiler, stuck, [0, 0]) == [{0}, {0, 1}, set()]
    assert not stuck.has_failed
    stuck.accept(0)
    stuck.accept(0)
    assert rows_of(compiler, stuck) == [set()]
    assert stuck.error == "it cannot be completed from here with the tokens of this model"
    compiler.close()


def test_a_limit_met_ahead_of_the_output_is_no_error() -> None:
    """The lexer may build 60 states, fewer than a long look ahead needs."""
    limits = LLParserLimits(max_lexer_states=60, verbose_errors=False)
    compiler = GrammarCompiler(byte_tokenizer, limits=limits)
    structured = StructuredOutput(regex="(a|b)*a(a|b){12}")
    draft = [A, B, B, A, A, B, A, B, B, B, A, A, A, A, B, A, B, A, B, B, A, B, A, A, B, B, A, B, A, B] * 3
    grammar = compiler.compile(structured)
    generous = compiler_over_bytes()
    assert rows_of(compiler, grammar, draft) == rows_of(generous, generous.compile(structured), draft)
    generous.close()
    assert grammar.error is None
    for token in draft[:40]:
        grammar.accept(token)
        assert rows_of(compiler, grammar, draft[40:43])[0] >= {A, B}
    assert grammar.error is None
    assert rows_of(compiler, compiler.compile(structured)) == [{A, B}]
    compiler.close()


def test_a_limit_met_by_the_output_is_an_error() -> None:
    limits = LLParserLimits(step_max_items=20, verbose_errors=False)
    compiler = GrammarCompiler(byte_tokenizer, limits=limits)
    grammar = compiler.compile(StructuredOutput(json='{"type": "object"}'))
    for token in b'{"abc": ':
        grammar.accept(token)
    assert not grammar.has_failed
    assert rows_of(compiler, grammar) == [set()]
    assert grammar.error is not None
    assert "Too many items" in grammar.error
    compiler.close()
