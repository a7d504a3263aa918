"""What a draft model proposes for a sequence, what it computes for it, and which pages it takes and gives back."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.errors import UsageError
from batchspec.request import SamplingParams
from batchspec.sequence import Sequence
from batchspec.testing import TableModel, make_draft_model

from .draft_models import TABLE, Checked
from .paged import PagedModel
from .runs import ask, checked_engine, serve
from .scripts import poisoned_model
from .sequences import decoding
from .workloads import LETTERS


def greedy(tokens: list[int], **sampling: Any) -> Sequence:
    return decoding(tokens, sampling=SamplingParams(temperature=0.0, **sampling))


def rows_of(target: TableModel, draft: TableModel, *, max_tokens: int, **settings: Any) -> list[int]:
    """Serve one request with a prompt of five tokens; return the rows of the draft model's passes."""
    draft_model = make_draft_model(model=draft, **settings)
    engine = checked_engine(model=target, drafter=DraftModelDrafter(num_spec_tokens=3, draft_model=draft_model))
    serve(engine, [ask([7, 8, 9, 10, 11], max_tokens=max_tokens)])
    return draft.num_rows


def test_accepted_tokens_are_not_computed_again() -> None:
    rows = rows_of(TableModel.counting(), TableModel.counting(), max_tokens=13)
    assert rows == [6, 1, 1, 2, 1, 1, 2, 1, 1]


def test_rejected_tokens_are_rolled_back() -> None:
    rows = rows_of(TableModel.counting(), TableModel(torch.eye(257)), max_tokens=4)
    assert rows == [6, 1, 1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("num_right", [0, 1, 2])
def test_tokens_that_came_from_elsewhere_take_the_place_of_the_drafted_ones(num_right: int) -> None:
    """As when the target accepted another drafter's proposal, which was longer."""

    def model() -> Checked:
        return Checked(make_draft_model(model=PagedModel(TABLE, block_size=4)))

    used, sequence = model(), greedy(LETTERS)
    (draft,) = used.propose([sequence], num_tokens=4)
    wrong = LETTERS[0] if draft.token_ids[num_right] != LETTERS[0] else LETTERS[1]
    sequence.append([*draft.token_ids[:num_right], wrong, LETTERS[3], LETTERS[2]])
    (found,) = used.propose([sequence], num_tokens=4)
    (expected,) = model().propose([sequence], num_tokens=4)
    assert (found.token_ids, found.token_probs) == (expected.token_ids, expected.token_probs)


def test_a_long_prompt_is_caught_up_with_before_the_first_draft() -> None:
    rows = rows_of(TableModel.counting(), TableModel.counting(), max_tokens=5, max_num_batched_tokens=4)
    assert rows == [4, 2, 1, 1]


def test_no_draft_beyond_the_draft_models_context() -> None:
    draft_model = make_draft_model(context_length=12)
    lengths = {}
    for num_tokens in (8, 10, 11, 12, 13, 20):
        drafts = draft_model.propose([decoding([1] * num_tokens)], num_tokens=4)
        lengths[num_tokens] = len(drafts[0].token_ids) if drafts else 0
    assert lengths == {8: 4, 10: 3, 11: 2, 12: 1, 13: 0, 20: 0}
    assert max(draft_model.runner.num_rows) <= 12  # type: ignore[attr-defined]


def test_no_draft_beyond_the_draft_models_pages() -> None:
    draft_model = Checked(make_draft_model(num_blocks=2, block_size=4))
    assert [len(draft_model.propose([decoding([1] * n)], num_tokens=4)) for n in (5, 8, 9)] == [1, 1, 0]


def test_a_draft_longer_than_the_one_before() -> None:
    draft_model, sequence = make_draft_model(model=TableModel.counting()), greedy([1, 2, 3])
    for k in (1, 70, 2):
        (draft,) = draft_model.propose([sequence], num_tokens=k)
        assert draft.token_ids == list(range(4, 4 + k))
    sequence.append([4, 5])
    (draft,) = draft_model.propose([sequence], num_tokens=2)
    assert draft.token_ids == [6, 7]


def test_pages_are_given_back_by_who_drafted_longest_ago() -> None:
    draft_model = make_draft_model(num_blocks=6, block_size=4)
    pages = draft_model.pages
    one, two, three = (decoding([token] * 6) for token in (1, 2, 3))
    for sequence in (one, two, three, one):
        draft_model.propose([sequence], num_tokens=3)
    assert [shadow.sequence for shadow in pages.shadows] == [two, three, one]
    draft_model.propose([decoding([4] * 6)], num_tokens=3)
    assert [bool(shadow.own.blocks) for shadow in pages.shadows] == [False, True, True, True]


def test_of_those_that_draft_together_those_are_spared_that_come_next() -> None:
    draft_model = make_draft_model(model=PagedModel(TABLE, block_size=4), num_blocks=6, block_size=4)
    sequences = [decoding([letter] * 6) for letter in LETTERS[:4]]
    draft_model.propose(sequences, num_tokens=3)
    kept = [bool(shadow.own.blocks) for shadow in draft_model.pages.shadows]
    assert kept == [True, True, False, True]


def test_who_drafts_less_than_before_gives_pages_back() -> None:
    draft_model = Checked(make_draft_model(model=PagedModel(TABLE, block_size=4), num_blocks=4, block_size=4))
    sequences = [decoding([letter] * 6) for letter in LETTERS[:2]]
    draft_model.propose(sequences[:1], num_tokens=11)
    assert len(draft_model.propose(sequences, num_tokens=1)) == 2
    assert [len(shadow.own.blocks) for shadow in draft_model.inner.pages.shadows] == [2, 2]


def test_what_the_draft_model_cannot_read_gets_no_draft_and_what_the_target_cannot_is_not_drafted() -> None:
    table = torch.zeros(12, 12)
    table[:, 11], table[:, 4] = 9.0, 1.0
    draft_model = make_draft_model(model=TableModel(table), num_vocabulary=10)
    drafts = draft_model.propose([greedy([1, 10, 2]), greedy([1, 2, 3])], num_tokens=2)
    assert [draft.token_ids for draft in drafts] == [[4, 4]]


def test_a_draft_ends_where_the_draft_model_says_nothing() -> None:
    draft_model = make_draft_model(model=poisoned_model(5))
    drafts = draft_model.propose([greedy([2, 3]), greedy([4, 5])], num_tokens=4)
    assert [draft.token_ids for draft in drafts] == [[4, 5]]


def test_probabilities_are_those_of_the_draft_model() -> None:
    table = TableModel.random(seed=3).table
    for temperature in (0.0, 1e-6, 0.7, 1.5):
        sequence = decoding([1, 2], sampling=SamplingParams(temperature=temperature, seed=3))
        (draft,) = make_draft_model(model=TableModel(table)).propose([sequence], num_tokens=3)
        probs = (table.double() / (temperature or 1.0)).softmax(dim=-1)
        pairs = zip([2, *draft.token_ids], draft.token_ids, strict=False)
        assert draft.token_probs == pytest.approx([float(probs[pair]) for pair in pairs], abs=1e-5)


def test_parameters_of_the_request_shape_the_draft() -> None:
    """Each of them would be violated by the likeliest token; log probabilities that are asked for cost nothing."""
    for sampling, expected in (
        ({"allowed_token_ids": (9,)}, [9, 9]),
        ({"logit_bias": ((3, -50.0),)}, [0, 1]),
        ({"logprobs": 4, "prompt_logprobs": 2}, [3, 4]),
    ):
        sequence = greedy([1, 2], **sampling)
        (draft,) = make_draft_model(model=TableModel.counting()).propose([sequence], num_tokens=2)
        assert draft.token_ids == expected
    banned = greedy([1, 2])
    banned.bad_words = ((2, 3),)
    (draft,) = make_draft_model(model=TableModel.counting()).propose([banned], num_tokens=2)
    assert draft.token_ids == [0, 1]
    least = greedy([1, 2], min_tokens=2)
    least = replace(least, stop_ids=frozenset({3, 4}))
    (draft,) = make_draft_model(model=TableModel.counting()).propose([least], num_tokens=3)
    assert draft.token_ids == [0, 1, 2]


def test_drafting_does_not_touch_what_it_reads() -> None:
    sequence = greedy([1, 2, 3], logprobs=2)
    before = sequence.tokens.copy()
    model = make_draft_model(model=TableModel.counting())
    model.propose([sequence], num_tokens=5)
    assert np.array_equal(sequence.tokens, before)
    assert (sequence.blocks, sequence.sampling.logprobs, sequence.num_computed_tokens) == ([], 2, 2)


def test_without_an_engine_there_is_no_draft_model() -> None:
    with pytest.raises(UsageError, match="needs an engine with a model"):
        make_drafter(SpeculativeConfig.from_mapping({"method": "draft_model"}))


def test_which_configurations_have_a_draft_model() -> None:
    found = {
        (method, model): SpeculativeConfig.from_mapping({"method": method, "model": model}).has_draft_model
        for method in ("draft_model", "auto")
        for model in (None, "x")
    }
    assert found == {
        ("draft_model", None): True,
        ("draft_model", "x"): True,
        ("auto", None): False,
        ("auto", "x"): True,
    }
    assert not SpeculativeConfig.from_mapping({"method": "suffix"}).has_draft_model
