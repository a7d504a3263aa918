"""The masks of a step against a second opinion, row by row, with and without drafts."""

import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.grammar import GrammarCompiler, byte_tokenizer
from batchspec.params import StructuredOutput
from batchspec.step import StepPlan
from tests.core.sequences import sampled_chunk

from .derivatives import Node, after, can_end, is_dead, nodes, spelled
from .driving import EOS, allowed, compiler_over_bytes, masks_of, rows_of, sequence_with

LETTERS = [ord(letter) for letter in "abcd"]
texts = st.lists(st.sampled_from([*LETTERS, EOS]), max_size=6)


def expected(node: Node, token_ids: list[int]) -> list[set[int]]:
    """The masks before each of the tokens and behind them: only the end behind an end, nothing behind a rejection."""
    masks = []
    has_ended = is_rejected = False
    for token in [*token_ids, None]:
        ways = set() if has_ended else {letter for letter in LETTERS if not is_dead(after(node, chr(letter)))}
        ends = {EOS} if has_ended or can_end(node) else set()
        masks.append(set() if is_rejected else ways | ends)
        if token is None or token not in masks[-1]:
            is_rejected = True
        elif token == EOS:
            has_ended = True
        else:
            node = after(node, chr(token))
    return masks


@settings(max_examples=300)
@given(node=nodes, emitted=texts, draft=texts)
def test_masks_are_those_of_the_derivatives(node: Node, emitted: list[int], draft: list[int]) -> None:
    compiler = compiler_over_bytes()
    grammar = compiler.compile(StructuredOutput(regex=spelled(node)))
    for token in emitted:
        if token == EOS or grammar.num_valid([token]) == 0:
            break
        grammar.accept(token)
        node = after(node, chr(token))
    before = rows_of(compiler, grammar)
    masks = expected(node, draft)
    assert rows_of(compiler, grammar, draft) == masks
    one_end = draft[: draft.index(EOS) + 1] if EOS in draft else draft
    assert grammar.num_valid(draft) == sum(token in mask for token, mask in zip(one_end, masks, strict=False))
    assert rows_of(compiler, grammar) == before == masks[:1]
    compiler.close()


@settings(max_examples=60)
@given(data=st.data())
def test_masks_rows_with_drafts_are_what_consuming_one_by_one_gives(data: st.DataObject) -> None:
    compiler = compiler_over_bytes()
    schema = (
        '{"type": "object", "properties": {"a": {"type": "number"}, "b": {"enum": ["é", true]}}, "required": ["a"]}'
    )
    grammar = compiler.compile(StructuredOutput(json=schema))
    alone = compiler.compile(StructuredOutput(json=schema))
    whole = [*b'{"a": -1.5e3, "b":"\xc3\xa9"}', EOS]
    cut = data.draw(st.integers(0, len(whole)))
    for token in whole[:cut]:
        grammar.accept(token)
        alone.accept(token)
    draft = whole[cut : cut + data.draw(st.integers(0, 8))]
    rows = rows_of(compiler, grammar, draft)
    for row, token in zip(rows, [*draft, None], strict=True):
        assert row == rows_of(compiler, alone)[0]
        assert alone.has_ended or row == {t for t in range(257) if alone.num_valid([t])}
        if token is not None:
            alone.accept(token)
    compiler.close()


def test_rows_count_the_rows_of_sequences_without_a_grammar() -> None:
    compiler = compiler_over_bytes()
    one, two = (compiler.compile(StructuredOutput(regex=regex)) for regex in ("ab+", "xy"))
    a, b, x = b"abx"
    masks = masks_of(
        compiler,
        sampled_chunk(sequence_with(None), [1, 2]),
        sampled_chunk(sequence_with(one), [a, b]),
        sampled_chunk(sequence_with(None)),
        sampled_chunk(sequence_with(two)),
        sampled_chunk(sequence_with(None), [1]),
    )
    assert masks.rows.dtype == np.int64
    assert masks.bits.dtype == np.int32
    assert masks.bits.shape == (4, 9)
    assert masks.rows.tolist() == [3, 4, 5, 7]
    assert [allowed(masks, i, 257) for i in range(4)] == [{a}, {b}, {b, EOS}, {x}]
    compiler.close()


def test_nothing_starts_without_a_grammar() -> None:
    compiler = compiler_over_bytes()
    before = threading.active_count()
    assert compiler.masks(StepPlan(chunks=[]))() is None
    assert compiler.masks(StepPlan(chunks=[sampled_chunk(sequence_with(None), [1])]))() is None
    assert threading.active_count() == before


def test_closing_ends_the_thread_and_masks_can_be_asked_for_again() -> None:
    compiler = compiler_over_bytes()
    before = threading.active_count()
    grammar = compiler.compile(StructuredOutput(regex="a"))
    for _ in range(2):
        assert rows_of(compiler, grammar) == [{ord("a")}]
        assert threading.active_count() == before + 1
        compiler.close()
        assert threading.active_count() == before
    compiler.close()


def test_every_end_of_sequence_token_ends() -> None:
    compiler = GrammarCompiler(lambda: byte_tokenizer(num_vocabulary=260, eos_ids=(256, 258)))
    grammar = compiler.compile(StructuredOutput(regex="a"))
    a = ord("a")
    assert rows_of(compiler, grammar, [a, 258, 256]) == [{a}, {256, 258}, {256, 258}, {256, 258}]
    assert grammar.num_valid([a, 258, 256, a]) == 2
    assert rows_of(compiler, grammar, [a, 257]) == [{a}, {256, 258}, set()]
    compiler.close()


@pytest.mark.parametrize("token", [-1, 257, 1 << 31, 1 << 40])
def test_draft_tokens_outside_the_vocabulary_are_rejected(token: int) -> None:
    compiler = compiler_over_bytes()
    grammar = compiler.compile(StructuredOutput(regex="ab"))
    a, b = b"ab"
    assert rows_of(compiler, grammar, [a, token, b]) == [{a}, {b}, set(), set()]
    assert rows_of(compiler, grammar, [token]) == [{a}, set()]
    assert grammar.num_valid([a, token]) == 1
    assert grammar.error is None
    compiler.close()


def test_a_compiler_that_is_dropped_open_warns_of_nothing() -> None:
    with warnings.catch_warnings(record=True) as caught:
        compiler = compiler_over_bytes()
        rows_of(compiler, compiler.compile(StructuredOutput(regex="a")))
        del compiler
    assert not caught
