"""What a grammar rejects is never counted as drafted, and nothing it rejects is ever emitted."""

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.acceptance import Level
from batchspec.sequence import Sequence
from batchspec.testing import ByteTokenizer, ScriptedDrafter, TableModel
from tests.core.runs import body_of, reconciliation_of, spec_of
from tests.grammar.schemas import json_schemas

from .serving import ContextModel, engine_of, parsed, serve_one

EOS = ByteTokenizer.eos_id


def counting_engine(script: Any, *, k: int = 4) -> Any:
    """The model answers every byte with the next one, so that every token is known beforehand."""
    return engine_of(
        ScriptedDrafter(num_spec_tokens=k, script=script), model=TableModel.counting(), level=Level.DETAILED
    )


def test_a_draft_is_cut_at_the_first_token_the_grammar_rejects_before_it_is_counted() -> None:
    """The model wants b c d e ...; the grammar allows b, c, then only X: a draft "c d e f" counts as "c"."""
    body = {"prompt": "a", "max_tokens": 8, "temperature": 0, "structured_outputs": {"regex": "bcX[0-9]"}}
    drafts = {1: b"cdef", 2: b"dX", 3: b"0Y"}
    record = serve_one(
        counting_engine(lambda sequence: list(drafts.get(sequence.num_output_tokens, b""))),
        parsed(body),
    )
    spec = spec_of(record)
    assert record["response"]["body"]["choices"][0]["text"] == "bcX0"
    # behind b: "c" is left of "cdef"; c is accepted and X follows it, so that the second draft never comes up
    assert spec["per_step_drafted"] == [1, 1]
    assert spec["per_step_accepted"] == [1, 1]
    assert spec["per_step_position"] == [1, 3]


def test_a_step_whose_draft_is_rejected_whole_is_not_a_step() -> None:
    body = {"prompt": "a", "max_tokens": 8, "temperature": 0, "structured_outputs": {"regex": "bcd"}}
    record = serve_one(counting_engine(lambda sequence: list(b"zzzz")), parsed(body))
    spec = spec_of(record)
    assert record["response"]["body"]["choices"][0]["text"] == "bcd"
    assert (spec["num_spec_steps"], spec["num_draft_tokens"], spec["per_step_drafted"]) == (0, 0, [])
    assert spec["num_decode_steps"] == 3


def test_the_end_of_the_sequence_in_a_draft_counts_only_where_the_grammar_may_end() -> None:
    body = {"prompt": "a", "max_tokens": 8, "temperature": 0, "structured_outputs": {"regex": "bcd"}}
    record = serve_one(
        counting_engine(lambda sequence: [EOS, *b"cd"] if sequence.num_output_tokens == 1 else []), parsed(body)
    )
    assert spec_of(record)["num_draft_tokens"] == 0
    record = serve_one(counting_engine(lambda sequence: [*b"cd", EOS, EOS]), parsed(body))
    spec = spec_of(record)
    assert (spec["per_step_drafted"], spec["per_step_accepted"]) == ([3], [3])
    assert record["response"]["body"]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.slow
def test_every_output_validates_whatever_the_schema_and_the_drafts() -> None:
    """The drafts are pieces of JSON, right or wrong; an output may only be cut off by its length."""
    finished: list[bool] = []

    @settings(max_examples=500)
    @given(schema=json_schemas(), seed=st.integers(0, 2**32), k=st.integers(1, 6))
    def check(schema: Any, seed: int, k: int) -> None:
        choice = choice_under(schema, seed=seed, k=k)
        finished.append(choice["finish_reason"] == "stop")
        if finished[-1]:
            jsonschema.validate(json.loads(choice["text"]), schema)
        else:
            assert choice["finish_reason"] == "length"

    check()
    assert sum(finished) > 0.7 * len(finished)


def choice_under(schema: Any, *, seed: int, k: int) -> dict[str, Any]:
    pieces = [b'{"', b'": ', b'"}', b", ", b"[1, ", b"]]", b"true", b"null", b'"ab"', b"-1.5", bytes([seed % 256])]

    def script(sequence: Sequence) -> list[int]:
        return [*pieces[(seed + sequence.num_tokens) % len(pieces)], EOS]

    engine = engine_of(
        ScriptedDrafter(num_spec_tokens=k, script=script),
        model=ContextModel(seed=seed % 1000, closing=True),
        level=Level.DETAILED,
    )
    body = {"prompt": "x", "max_tokens": 120, "temperature": 0.8, "seed": seed, "structured_outputs": {"json": schema}}
    record = serve_one(engine, parsed(body))
    assert reconciliation_of(engine, [record]).is_exact
    choice: dict[str, Any] = body_of(record)["choices"][0]
    return choice


@pytest.mark.parametrize("temperature", [0, 1.0])
@pytest.mark.parametrize("pattern", ["[ab]{2,5}", "(ab|cd)+\n?", "a*b*c*", "é+😀"])
def test_a_finished_output_matches_its_pattern(pattern: str, temperature: float) -> None:
    for seed in range(10):
        body = {"prompt": "x", "max_tokens": 60, "temperature": temperature, "seed": seed, "guided_regex": pattern}
        choice = serve_one(engine_of(), parsed(body))["response"]["body"]["choices"][0]
        if choice["finish_reason"] == "stop":
            assert re.fullmatch(pattern, choice["text"])
