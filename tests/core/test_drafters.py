"""What every drafter must do, for every drafter that the registry names; and the configuration that names them."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchspec.acceptance import Level
from batchspec.drafting import Drafter, SpeculativeConfig, make_drafter
from batchspec.drafting.means import Means
from batchspec.errors import UsageError
from batchspec.testing import TableModel, make_draft_model

from .runs import ask, checked_engine, reconciliation_of, serve, token_ids_of
from .sequences import decoding


class OnlyOnes:
    """A grammar that allows nothing but ones, and so forces them."""

    error = None

    def num_valid(self, token_ids: list[int]) -> int:
        return next((i for i, token in enumerate(token_ids) if token != 1), len(token_ids))

    def accept(self, token_id: int) -> None:
        pass

    def forced(self) -> list[int]:
        return [1] * 9


grammars = st.sampled_from([None, OnlyOnes()])
texts = st.lists(st.integers(0, 3), min_size=2, max_size=24)
every_drafter = pytest.mark.parametrize(
    "method",
    [
        "none",
        "ngram",
        "forced",
        "ngram+forced",
        "suffix",
        "suffix+forced",
        "recall",
        "draft_model",
        "draft_model+forced",
        "auto",
        "auto+everything",
    ],
)


class OldAnswers:
    """Earlier answers that are wrong for everyone, but begin well now and then."""

    def answer_to(self, custom_id: str, sample_index: int) -> NDArray[np.int64] | None:
        return None if custom_id == "r1" else np.array([0, 1, 2, 3, 0, 1, 2, sample_index] * 3, dtype=np.int64)

    def latest(self, most: int) -> Iterator[NDArray[np.int64]]:
        yield np.array([1, 2, 1, 2, 3, 0, 0, most % 4], dtype=np.int64)


def drafter_of(name: str, *, k: int = 3) -> Drafter:
    method, _, more = name.partition("+")
    if method == "none":
        return make_drafter(SpeculativeConfig.from_mapping({"method": "none"}))
    keys: dict[str, object] = {"method": method, "num_speculative_tokens": k}
    keys |= {"prompt_lookup_min": 1, "prompt_lookup_max": 3} if method == "ngram" else {}
    keys |= {"forced_tokens": True} if more else {}
    keys |= {"path": "old.jsonl"} if method == "recall" or more == "everything" else {}
    keys |= {"model": "small", "adaptive": False} if more == "everything" else {}
    means = Means(draft_model=make_draft_model, answers=lambda _: OldAnswers())
    return make_drafter(SpeculativeConfig.from_mapping(keys), means)


@every_drafter
@settings(max_examples=40)
@given(tokens=st.lists(texts, min_size=1, max_size=5), grammar=grammars, k=st.integers(1, 5), room=st.integers(0, 6))
def test_drafts_are_within_k_and_within_the_context_and_never_empty(
    method: str, tokens: list[list[int]], grammar: OnlyOnes | None, k: int, room: int
) -> None:
    drafter = drafter_of(method, k=k)
    sequences = [decoding(text, context_limit=len(text) + 1 + room) for text in tokens]
    for sequence in sequences:
        sequence.grammar = grammar
        drafter.begin(sequence)
    drafts = drafter.propose(sequences)
    assert len({id(draft.sequence) for draft in drafts}) == len(drafts)
    for draft in drafts:
        assert any(draft.sequence is sequence for sequence in sequences)
        assert 1 <= len(draft.token_ids) <= drafter.num_spec_tokens
        assert draft.sequence.num_tokens + len(draft.token_ids) < draft.sequence.context_limit
        assert all(type(token) is int for token in draft.token_ids)


@every_drafter
@settings(max_examples=40)
@given(tokens=st.lists(texts, min_size=1, max_size=5), data=st.data())
def test_drafts_are_repeatable_and_do_not_depend_on_the_batch(
    method: str, tokens: list[list[int]], data: st.DataObject
) -> None:
    drafter = drafter_of(method)
    sequences = [decoding(text) for text in tokens]
    for sequence in sequences:
        sequence.grammar = data.draw(grammars)
        drafter.begin(sequence)
    together = {id(draft.sequence): draft.token_ids for draft in drafter.propose(sequences)}
    shuffled = {id(draft.sequence): draft.token_ids for draft in drafter.propose(data.draw(st.permutations(sequences)))}
    alone = {id(draft.sequence): draft.token_ids for one in sequences for draft in drafter.propose([one])}
    assert together == shuffled == alone


@every_drafter
@given(tokens=texts, grammar=grammars)
@settings(max_examples=20)
def test_proposing_leaves_the_sequence_alone(method: str, tokens: list[int], grammar: OnlyOnes | None) -> None:
    drafter, sequence = drafter_of(method), decoding(tokens)
    drafter.begin(sequence)
    before = sequence.tokens.tobytes(), sequence.num_tokens, sequence.num_computed_tokens
    sequence.grammar = grammar
    for draft in drafter.propose([sequence]):
        draft.token_ids.clear()
    assert (sequence.tokens.tobytes(), sequence.num_tokens, sequence.num_computed_tokens) == before


@every_drafter
def test_an_empty_batch_gets_no_drafts(method: str) -> None:
    assert drafter_of(method).propose([]) == []


@every_drafter
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_no_drafter_changes_the_output(method: str, temperature: float) -> None:
    model = TableModel.random(seed=5, scale=3.0)
    requests = [ask([i, i + 1, i], index=i, max_tokens=30, temperature=temperature, seed=i) for i in range(4)]
    plain = serve(checked_engine(model=model), requests)
    for k in (1, 3, 8):
        engine = checked_engine(model=model, drafter=drafter_of(method, k=k), level=Level.SUMMARY)
        records = serve(engine, requests)
        assert [token_ids_of(record) for record in records] == [token_ids_of(record) for record in plain]
        assert reconciliation_of(engine, records).is_exact


@every_drafter
def test_no_drafter_changes_the_output_of_sequences_that_are_put_back_or_stop_early(method: str) -> None:
    """Pages for two sequences of four, short steps, and stops that fall into drafts."""
    model = TableModel.random(seed=8, scale=4.0)
    requests = [
        ask([i, 7, i], index=i, max_tokens=25, temperature=0.4, seed=i, stop_token_ids=tuple(range(i, 250, 50)))
        for i in range(12)
    ]
    plain = serve(checked_engine(model=model), requests)
    assert len({len(ids[0]) for ids in map(token_ids_of, plain)}) > 3
    tight = {"max_num_seqs": 4, "num_blocks": 16, "max_model_len": 64, "max_num_batched_tokens": 24}
    engine = checked_engine(model=model, drafter=drafter_of(method, k=4), level=Level.SUMMARY, **tight)
    records = serve(engine, requests)
    assert engine.scheduler.num_preemptions
    assert [token_ids_of(record) for record in records] == [token_ids_of(record) for record in plain]
    assert reconciliation_of(engine, records).is_exact


@pytest.mark.parametrize(
    ("given_", "low", "high"),
    [
        ({}, 5, 5),
        ({"prompt_lookup_min": 2}, 2, 2),
        ({"prompt_lookup_max": 4}, 4, 4),
        ({"prompt_lookup_min": 2, "prompt_lookup_max": 4}, 2, 4),
    ],
)
def test_lookup_bounds_that_are_not_given(given_: dict[str, int], low: int, high: int) -> None:
    config = SpeculativeConfig.from_mapping({"method": "ngram", "num_speculative_tokens": 3} | given_)
    assert (config.prompt_lookup_min, config.prompt_lookup_max) == (low, high)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"metod": "ngram"}, "unknown key 'metod'; the known keys are method, num_speculative_tokens, "),
        ({"method": "eagle3"}, "'eagle3' is not known; choose one of none, ngram"),
        (
            {"num_speculative_tokens": 0},
            "'num_speculative_tokens' of --speculative-config) must be an integer from 1 to 256, not 0",
        ),
        ({"num_speculative_tokens": True}, "not True"),
        ({"num_speculative_tokens": "3"}, "not '3'"),
        ({"num_speculative_tokens": None}, "not None"),
        ({"forced_tokens": 1}, "'forced_tokens' of --speculative-config) must be true or false, not 1"),
        ({"forced_tokens": True, "method": "none"}, "means nothing to the method none"),
        ({"forced_tokens": False, "method": "forced"}, "cannot be false with the method forced"),
        ({"num_speculative_tokens": 0, "method": "forced"}, "must be an integer from 1 to 256, not 0"),
        ({"prompt_lookup_min": 0}, "must be an integer from 1 to 256, not 0"),
        ({"prompt_lookup_max": 2.0}, "not 2.0"),
        ({"prompt_lookup_min": 4, "prompt_lookup_max": 2}, "is 4, above prompt_lookup_max, which is 2"),
    ],
)
def test_a_wrong_configuration_is_a_sentence(keys: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=r"\.$") as caught:
        SpeculativeConfig.from_mapping(keys)
    assert message in str(caught.value)


def test_the_configuration_round_trips_through_its_document() -> None:
    config = SpeculativeConfig()
    assert (config.num_speculative_tokens, config.prompt_lookup_min, config.prompt_lookup_max) == (3, 1, 3)
    assert SpeculativeConfig.from_mapping(config.document()) == config
    assert not config.forced_tokens
    for keys in ({"method": "forced"}, {"forced_tokens": True}):
        forced = SpeculativeConfig.from_mapping(keys)
        assert forced.document()["forced_tokens"]
        assert SpeculativeConfig.from_mapping(forced.document()) == forced
    none = SpeculativeConfig.from_mapping({"method": "none"})
    assert SpeculativeConfig.from_mapping(none.document()) == none
    assert make_drafter(none).num_spec_tokens == 0
