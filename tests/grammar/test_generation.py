"""Outputs drawn at random from the masks, with random drafts: what ends is in the grammar."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

import batchspec
from batchspec.grammar import GrammarCompiler, byte_tokenizer
from batchspec.model.grammar_tokenizer import grammar_tokenizer
from batchspec.params import StructuredOutput
from tests.core.sequences import sampled_chunk

from .driving import EOS, Writer, allowed, masks_of, sequence_with
from .schemas import json_schemas

MODEL = Path(batchspec.__file__).parent / "models" / "target"
LENGTH = 250


def embedded() -> tuple[Any, list[bytes], frozenset[int]]:
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    eos_ids = frozenset({tokenizer.eos_token_id})
    made = grammar_tokenizer(tokenizer, num_vocabulary=len(tokenizer), eos_ids=eos_ids)
    return made, [made.decode_bytes([token]) for token in range(made.vocab_size)], eos_ids


def over_bytes() -> tuple[Any, list[bytes], frozenset[int]]:
    return byte_tokenizer(), [bytes([byte]) for byte in range(256)] + [b""], frozenset({EOS})


def is_spelling(row: set[int]) -> bool:
    """Whether a mask may name the usual token of forced text alone, where the grammar allows shorter ones, too."""
    return len(row) == 1


def write(compiler: GrammarCompiler, schema: dict[str, Any], writer: Writer) -> bytes | None:
    """The bytes of an output; None when it reached the length."""
    grammar = compiler.compile(StructuredOutput(json=json.dumps(schema)))
    sequence = sequence_with(grammar, max_tokens=LENGTH)
    while sequence.num_output_tokens < LENGTH and not grammar.has_ended:
        draft = writer.draft(grammar, sequence.output_ids, 3)
        num_valid = grammar.num_valid(draft)
        masks = masks_of(compiler, sampled_chunk(sequence, draft[:num_valid]))
        rows = [allowed(masks, row, grammar.num_vocabulary) for row in range(num_valid + 1)]
        assert all(token in row or is_spelling(row) for token, row in zip(draft[:num_valid], rows, strict=False))
        assert num_valid == len(draft) or draft[num_valid] not in rows[num_valid]
        for row, wish in zip(rows, [*draft[:num_valid], None], strict=True):
            token = writer.choose(row, wish=wish)
            sequence.append([token])
            assert grammar.error is None
            if token != wish or grammar.has_ended or sequence.num_output_tokens == LENGTH:
                break
        sequence.num_computed_tokens = sequence.num_tokens - 1
    return b"".join(writer.tokens[token] for token in sequence.output_ids[:-1]) if grammar.has_ended else None


@pytest.mark.parametrize(("vocabulary", "num_examples"), [(over_bytes, 350), (embedded, 150)])
def test_what_ends_is_valid_and_most_does(vocabulary: Any, num_examples: int) -> None:
    tokenizer, tokens, eos_ids = vocabulary()
    compiler = GrammarCompiler(lambda: tokenizer)
    outcomes: list[bool] = []

    @settings(max_examples=num_examples, suppress_health_check=list(HealthCheck))
    @given(schema=json_schemas(), seed=st.integers(0, 2**32))
    def run(schema: dict[str, Any], seed: int) -> None:
        output = write(compiler, schema, Writer(tokens, eos_ids=eos_ids, seed=seed))
        outcomes.append(output is not None)
        if output is not None:
            jsonschema.Draft202012Validator(schema).validate(json.loads(output.decode()))

    run()
    compiler.close()
    assert len(outcomes) >= num_examples
    assert sum(outcomes) > 0.6 * len(outcomes)
