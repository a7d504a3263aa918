"""Drafts of forced tokens."""

from collections.abc import Sequence as Many
from typing import Any

from batchspec.drafting import ForcedDrafter, NoDrafter, SpeculativeConfig, make_drafter
from batchspec.grammar import GrammarCompiler
from batchspec.params import StructuredOutput
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome

from .driving import compiler_over_bytes, sequence_with

SCHEMA = '{"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}'


class Script(NoDrafter):
    """Proposes one thing for every sequence and notes what it is told."""

    num_spec_tokens = 4

    def __init__(self, token_ids: list[int]):
        self.token_ids = token_ids
        self.told: list[object] = []

    def begin(self, sequence: Sequence) -> None:
        self.told.append(("begin", sequence))

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        return [Draft(sequence=sequence, token_ids=self.token_ids) for sequence in decoding if self.token_ids]

    def is_ready(self, sequence: Sequence) -> bool:
        self.told.append(("is_ready", sequence))
        return False

    def observe(self, outcomes: Many[Outcome], *, num_rows: int) -> None:
        self.told.append(("observe", list(outcomes)))

    def end(self, sequence: Sequence) -> None:
        self.told.append(("end", sequence))


def decoding_with(compiler: GrammarCompiler, text: bytes, **structured: Any) -> Sequence:
    sequence = sequence_with(compiler.compile(StructuredOutput(**structured)) if structured else None)
    sequence.append(list(text))
    sequence.num_computed_tokens = sequence.num_tokens - 1
    return sequence


def test_forced_tokens_fill_in_where_nothing_is_drafted() -> None:
    compiler = compiler_over_bytes()
    named = decoding_with(compiler, b'{"', json=SCHEMA)
    free = decoding_with(compiler, b'{"')
    open_ = decoding_with(compiler, b'{"answer":', json=SCHEMA)
    for inner in (NoDrafter(), Script(list(b"zzz"))):
        drafts = ForcedDrafter(inner, num_spec_tokens=4).propose([named, open_])
        assert [(draft.sequence, bytes(draft.token_ids)) for draft in drafts] == [(named, b"answ")]
    assert ForcedDrafter(NoDrafter(), num_spec_tokens=4).propose([free]) == []


def test_an_inner_draft_that_begins_well_is_kept_whole() -> None:
    compiler = compiler_over_bytes()
    named, free = decoding_with(compiler, b'{"', json=SCHEMA), decoding_with(compiler, b'{"')
    drafts = ForcedDrafter(Script(list(b"anzz")), num_spec_tokens=4).propose([named, free])
    assert [bytes(draft.token_ids) for draft in drafts] == [b"anzz", b"anzz"]


def test_forced_tokens_stay_within_the_context() -> None:
    named = decoding_with(compiler_over_bytes(), b'{"', json=SCHEMA)
    for room, text in [(0, None), (1, b"a"), (3, b"ans"), (90, b'answer"')]:
        named.context_limit = named.num_tokens + 1 + room
        drafts = ForcedDrafter(NoDrafter(), num_spec_tokens=7).propose([named])
        assert [bytes(draft.token_ids) for draft in drafts] == ([] if text is None else [text])


def test_the_inner_drafter_is_told_everything() -> None:
    inner = Script([])
    drafter = ForcedDrafter(inner, num_spec_tokens=4)
    sequence = sequence_with(None)
    drafter.begin(sequence)
    assert not drafter.is_ready(sequence)
    drafter.observe([], num_rows=0)
    drafter.end(sequence)
    assert inner.told == [("begin", sequence), ("is_ready", sequence), ("observe", []), ("end", sequence)]


def test_both_configurations_draft_forced_tokens() -> None:
    for keys in ({"method": "forced"}, {"method": "ngram", "forced_tokens": True}):
        drafter = make_drafter(SpeculativeConfig.from_mapping(keys | {"num_speculative_tokens": 2}))
        named = decoding_with(compiler_over_bytes(), b'{"', json=SCHEMA)
        assert [bytes(draft.token_ids) for draft in drafter.propose([named])] == [b"an"]
    plain = make_drafter(SpeculativeConfig.from_mapping({"method": "ngram"}))
    assert plain.propose([named]) == []
