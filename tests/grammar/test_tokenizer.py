"""A real vocabulary: that of the embedded model."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

import batchspec
from batchspec.errors import RequestError
from batchspec.grammar import GrammarCompiler
from batchspec.model.grammar_tokenizer import grammar_tokenizer
from batchspec.params import StructuredOutput

from .driving import rows_of

MODEL = Path(batchspec.__file__).parent / "models" / "target"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(MODEL)


def test_masks_follow_the_models_own_tokens(tokenizer: Any) -> None:
    num_vocabulary, eos = len(tokenizer) + 7, tokenizer.eos_token_id
    compiler = GrammarCompiler(
        lambda: grammar_tokenizer(tokenizer, num_vocabulary=num_vocabulary, eos_ids=frozenset({eos}))
    )
    text = '{"name": "Ada Lovelace", "born": 1815}'
    schema = '{"type": "object", "properties": {"name": {"type": "string"}, "born": {"type": "integer"}}}'
    for structured in (StructuredOutput(json=schema), StructuredOutput(choice=(text, "something else"))):
        grammar = compiler.compile(structured)
        token_ids = [*tokenizer(text, add_special_tokens=False).input_ids, eos]
        assert grammar.num_valid(token_ids) == len(token_ids)
        rows = rows_of(compiler, grammar, token_ids)
        assert all(token in row for row, token in zip(rows, token_ids, strict=False))
        assert rows[-1] == {eos}
        assert not any(token >= len(tokenizer) for row in rows for token in row)
        assert not any(special in row for row in rows[:-2] for special in tokenizer.all_special_ids)
        for token in token_ids:
            grammar.accept(token)
        assert grammar.error is None
    compiler.close()


def test_rows_with_drafts_are_those_of_emitting_one_by_one(tokenizer: Any) -> None:
    eos_ids = frozenset({tokenizer.eos_token_id})
    compiler = GrammarCompiler(lambda: grammar_tokenizer(tokenizer, num_vocabulary=len(tokenizer), eos_ids=eos_ids))
    text = '{"summary": "It was, they said, the best of times.", "kind": "novel"}'
    properties = {"summary": {"type": "string"}, "kind": {"enum": ["novel", "nouvelle"]}}
    schema = json.dumps({"type": "object", "properties": properties, "required": ["summary", "kind"]})
    usual = tokenizer(text, add_special_tokens=False).input_ids
    letters = [token for letter in text for token in tokenizer(letter, add_special_tokens=False).input_ids]
    for token_ids in (usual, letters):
        at_once, alone = (compiler.compile(StructuredOutput(json=schema)) for _ in range(2))
        rows = []
        for token in token_ids:
            rows += rows_of(compiler, alone)
            alone.forced()
            alone.num_valid([token, token])
            alone.accept(token)
        assert alone.error is None
        assert rows_of(compiler, at_once, token_ids)[:-1] == rows
    compiler.close()


@settings(max_examples=150)
@given(data=st.data())
def test_what_counts_as_valid_is_what_the_masks_allow_however_text_is_spelled(data: st.DataObject) -> None:
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    eos = tokenizer.eos_token_id
    compiler = GrammarCompiler(
        lambda: grammar_tokenizer(tokenizer, num_vocabulary=len(tokenizer), eos_ids=frozenset({eos}))
    )
    properties = {"summary": {"type": "string"}, "kind": {"enum": ["novel", "nouvelle"]}}
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["summary", "kind"],
        "additionalProperties": False,
    }
    grammar = compiler.compile(StructuredOutput(json=json.dumps(schema)))
    text = '{"summary": "the best of times", "kind": "novel"}'
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    token_ids = [token for piece in pieces for token in tokenizer(piece, add_special_tokens=False).input_ids] + [eos]
    start = data.draw(st.integers(0, len(token_ids) - 1))
    for token in token_ids[:start]:
        if not grammar.num_valid([token]):
            break
        grammar.accept(token)
    draft = token_ids[start : start + data.draw(st.integers(0, 8))]
    rows = rows_of(compiler, grammar, draft)
    num_allowed = next((i for i, token in enumerate(draft) if token not in rows[i]), len(draft))
    assert grammar.num_valid(draft) == num_allowed
    assert rows_of(compiler, grammar, draft) == rows
    compiler.close()


def test_forced_tokens_are_the_models_own_spelling(tokenizer: Any) -> None:
    compiler = GrammarCompiler(
        lambda: grammar_tokenizer(tokenizer, num_vocabulary=len(tokenizer), eos_ids=frozenset({tokenizer.eos_token_id}))
    )
    text = "It is what the contract says, word by word."
    forced = compiler.compile(StructuredOutput(choice=(text,))).forced()
    assert len(forced) > 3
    assert text.startswith(tokenizer.decode(forced))
    assert tokenizer(text, add_special_tokens=False).input_ids[: len(forced)] == forced


@pytest.mark.parametrize("name", ["<|end|>", "<|user|>", "<|bos|>"])
def test_the_name_of_a_special_token_is_text_like_any_other(tokenizer: Any, name: str) -> None:
    eos = tokenizer.eos_token_id
    compiler = GrammarCompiler(
        lambda: grammar_tokenizer(tokenizer, num_vocabulary=len(tokenizer), eos_ids=frozenset({eos}))
    )
    text = f"stop at {name} please"
    grammar = compiler.compile(StructuredOutput(choice=(text,)))
    written: list[int] = []
    while eos not in (tokens := rows_of(compiler, grammar)[0]):
        written.append(min(tokens))
        grammar.accept(written[-1])
        assert grammar.error is None
    assert tokenizer.decode(written, skip_special_tokens=True) == text
    compiler.close()


def test_a_tokenizer_that_cannot_be_read_is_a_sentence(tokenizer: Any) -> None:
    with pytest.raises(RequestError, match="cannot be served with this model's tokenizer") as caught:
        grammar_tokenizer(object(), num_vocabulary=10, eos_ids=frozenset({1}))
    assert (caught.value.param, caught.value.code) == ("structured_outputs", "unsupported_model")
    with pytest.raises(RequestError, match="cannot be served"):
        grammar_tokenizer(tokenizer, num_vocabulary=len(tokenizer), eos_ids=frozenset({len(tokenizer) + 5}))
