"""Drafts by a model with pages of its own: the same text, drafts that depend on the sequence alone, pages in order.

Where the draft model is the target once more, all that it drafts must be accepted: both see the same logits and draw
with the same noise. Any page that holds something else than it should, any wrong position or parameter shows.
"""

from collections.abc import Sequence as Many
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.engine import EngineCore
from batchspec.errors import UsageError
from batchspec.model.drafting.model import PagedDraftModel
from batchspec.request import Request, SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Draft
from batchspec.testing import TableModel, make_draft_model

from .paged import PagedModel
from .runs import ask, checked_engine, reconciliation_of, serve, spec_of, token_ids_of
from .scripts import FailingModel, poisoned_model
from .sequences import decoding
from .workloads import CONTEXT, plain_run, prone_table, tables, visible, workloads

TABLE = prone_table(4, end=-3.0, is_poisoned=False)
LETTERS = [ord(letter) for letter in "abcdef"]


def greedy(tokens: list[int], **sampling: Any) -> Sequence:
    return decoding(tokens, sampling=SamplingParams(temperature=0.0, **sampling))


class Checked:
    """A draft model that asserts, whenever it is asked, that no page is lost or has two owners."""

    def __init__(self, inner: PagedDraftModel):
        self.inner = inner
        self.num_recomputed = 0

    def propose(self, decoding: Many[Sequence], *, num_tokens: int) -> list[Draft]:
        pages = self.inner.pages
        before = {shadow.sequence for shadow in pages.shadows if shadow.own.blocks}
        drafts = self.inner.propose(decoding, num_tokens=num_tokens)
        self.num_recomputed += sum(not shadow.own.blocks for shadow in pages.shadows if shadow.sequence in before)
        self.check()
        for draft in drafts:
            assert draft.token_probs is not None
            assert 1 <= len(draft.token_ids) == len(draft.token_probs) <= num_tokens
            assert all(0 <= prob <= 1 for prob in draft.token_probs)
            assert max(draft.token_ids) < self.inner.num_vocabulary
        return drafts

    def end(self, sequence: Sequence) -> None:
        self.inner.end(sequence)
        self.check()

    def check(self) -> None:
        pages = self.inner.pages
        pages.pool.check([shadow.own.blocks for shadow in pages.shadows])
        for shadow in pages.shadows:
            assert shadow.own.num_computed_tokens <= len(shadow.own.blocks) * pages.pool.block_size


def engine_with(draft_model: Checked, table: torch.Tensor = TABLE, *, k: int = 3, **settings: Any) -> EngineCore:
    """An engine over a paged target that drafts with a model."""
    return checked_engine(
        model=PagedModel(table, block_size=4),
        drafter=DraftModelDrafter(num_spec_tokens=k, draft_model=draft_model),
        block_size=4,
        max_model_len=CONTEXT,
        level=Level.DETAILED,
        **settings,
    )


def draft_model_over(table: torch.Tensor = TABLE, **settings: Any) -> Checked:
    model = PagedModel(table, block_size=settings.setdefault("block_size", 4))
    return Checked(make_draft_model(model=model, **{"context_length": CONTEXT} | settings))


def requests_of(number: int, **sampling: Any) -> list[Request]:
    """Prompts of different lengths, some long."""
    sampling = {"max_tokens": 20, "temperature": 0.8} | sampling
    return [
        ask([LETTERS[(i + j) % 6] for j in range(2 + 7 * i % 31)], index=i, seed=i, **sampling) for i in range(number)
    ]


def ends_clean(draft_model: Checked) -> bool:
    pages = draft_model.inner.pages
    return not pages.shadows and pages.pool.num_free == pages.pool.num_blocks


@settings(max_examples=60)
@given(
    table=tables,
    requests=workloads(),
    k=st.integers(1, 5),
    max_num_seqs=st.integers(1, 5),
    spare_blocks=st.integers(0, 6),
    prefix_caching=st.booleans(),
    budget=st.integers(1, 24),
    draft_block_size=st.integers(1, 6),
    spare_draft_blocks=st.integers(0, 20),
    draft_budget=st.integers(1, 24),
    draft_prefix_caching=st.booleans(),
    is_twin=st.booleans(),
)
def test_output_never_depends_on_the_draft_model_and_a_twin_is_always_right(
    table: torch.Tensor,
    requests: list[Request],
    k: int,
    max_num_seqs: int,
    spare_blocks: int,
    prefix_caching: bool,
    budget: int,
    draft_block_size: int,
    spare_draft_blocks: int,
    draft_budget: int,
    draft_prefix_caching: bool,
    is_twin: bool,
) -> None:
    """Both pools from just enough for one sequence on, so that there are preemptions, evictions and groups."""
    expected, _ = plain_run(table, requests)
    draft_model = draft_model_over(
        table if is_twin else prone_table(11, end=0.0, is_poisoned=True),
        num_blocks=-(-CONTEXT // draft_block_size) + spare_draft_blocks,
        block_size=draft_block_size,
        max_num_batched_tokens=draft_budget,
        prefix_caching=draft_prefix_caching,
    )
    engine = engine_with(
        draft_model,
        table,
        k=k,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=budget,
        num_blocks=-(-CONTEXT // 4) + spare_blocks,
        prefix_caching=prefix_caching,
    )
    records = serve(engine, requests)
    assert [visible(record) for record in records] == [visible(record) for record in expected]
    assert reconciliation_of(engine, records).is_exact
    assert ends_clean(draft_model)
    if is_twin:
        assert engine.progress.num_accepted_draft_tokens == engine.progress.num_draft_tokens


def steps_of(draft_model: Checked, **settings: Any) -> list[tuple[list[int], list[int]]]:
    """Serve a dozen requests; return what was drafted and accepted in each step of each."""
    engine = engine_with(draft_model, **settings)
    records = serve(engine, requests_of(12))
    specs = [spec_of(record) for record in records]
    assert sum(spec["num_draft_tokens"] for spec in specs) > 200
    assert ends_clean(draft_model)
    return [(spec["per_step_drafted"], spec["per_step_accepted"]) for spec in specs]


def other_model(**settings: Any) -> Checked:
    """A draft model that is right now and then."""
    noise = torch.randn(TABLE.shape, generator=torch.Generator().manual_seed(1))
    return draft_model_over(TABLE + 0.7 * noise, **settings)


def test_drafts_do_not_depend_on_the_batch_nor_on_the_draft_models_pages() -> None:
    expected = steps_of(other_model(), max_num_seqs=1)
    assert {accepted for _, accepted_by_step in expected for accepted in accepted_by_step} == {0, 1, 2, 3}
    for max_num_seqs in (2, 5, 12):
        assert steps_of(other_model(), max_num_seqs=max_num_seqs, max_num_batched_tokens=256) == expected
        assert (
            steps_of(other_model(max_num_batched_tokens=7, prefix_caching=True), max_num_seqs=max_num_seqs) == expected
        )
    tiny = other_model(num_blocks=17)
    assert steps_of(tiny, max_num_seqs=12, max_num_batched_tokens=256) == expected
    assert tiny.num_recomputed > 0


def test_preempted_sequences_keep_what_the_draft_model_has_computed() -> None:
    draft_model = other_model()
    engine = engine_with(draft_model, max_num_seqs=8, num_blocks=26)
    records = serve(engine, requests_of(12))
    plain = serve(checked_engine(model=PagedModel(TABLE, block_size=4), max_model_len=CONTEXT), requests_of(12))
    assert [token_ids_of(record) for record in records] == [token_ids_of(record) for record in plain]
    assert engine.scheduler.num_preemptions > 0
    assert all(spec_of(record)["num_accepted_draft_tokens"] > 0 for record in records)
    assert draft_model.num_recomputed == 0


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


def test_shared_beginnings_are_computed_once() -> None:
    prompt = LETTERS * 4

    def num_computed(*, prefix_caching: bool) -> int:
        model = PagedModel(TABLE, block_size=4)
        draft_model = Checked(make_draft_model(model=model, prefix_caching=prefix_caching))
        engine = engine_with(draft_model, max_num_seqs=2)
        serve(engine, [ask(prompt, index=i, seed=i, temperature=0.8, max_tokens=6) for i in range(6)])
        assert ends_clean(draft_model)
        return model.num_tokens

    assert num_computed(prefix_caching=True) < num_computed(prefix_caching=False) - 3 * len(prompt)


def test_a_failed_pass_fails_the_requests_of_the_batch_and_no_others() -> None:
    def error() -> RuntimeError:
        return RuntimeError("out of memory")

    draft_model = Checked(make_draft_model(model=FailingModel(TABLE, failing=[4], error=error)))
    engine = engine_with(draft_model, max_num_seqs=2)
    codes = [token_ids_of(record) for record in serve(engine, requests_of(4, max_tokens=12))]
    assert codes[:2] == ["engine_error"] * 2
    assert all(code != "engine_error" for code in codes[2:])
    assert ends_clean(draft_model)


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
