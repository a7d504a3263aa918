"""Whole runs with a draft model that has pages of its own: the same text, and drafts that hang on the sequence alone.

Where the draft model is the target once more, all that it drafts must be accepted: both see the same logits and draw
with the same noise. Any page that holds something else than it should, any wrong position or parameter shows.
"""

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.request import Request
from batchspec.testing import make_draft_model

from .draft_models import TABLE, Checked, draft_model_over, ends_clean, engine_with, other_model, requests_of
from .paged import PagedModel
from .runs import ask, checked_engine, reconciliation_of, serve, spec_of, token_ids_of
from .scripts import FailingModel
from .workloads import CONTEXT, LETTERS, plain_run, prone_table, tables, visible, workloads


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


def steps_of(
    draft_model: Checked, requests: list[Request] | None = None, **settings: Any
) -> list[tuple[list[int], list[int]]]:
    """Serve requests, by default a dozen; return what was drafted and accepted in each step of each."""
    engine = engine_with(draft_model, **settings)
    records = serve(engine, requests or requests_of(12))
    specs = [spec_of(record) for record in records]
    assert sum(spec["num_draft_tokens"] for spec in specs) > 200
    assert ends_clean(draft_model)
    return [(spec["per_step_drafted"], spec["per_step_accepted"]) for spec in specs]


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


def test_others_find_what_became_of_a_sequence_and_not_what_was_drafted() -> None:
    """With pages of one token, what a sequence drafted and took back is what another that lost its pages looks for."""
    requests = [ask(LETTERS[:2], index=i, seed=i, temperature=0.8, max_tokens=20) for i in range(24)]
    expected = steps_of(other_model(), requests, max_num_seqs=1)
    sharing = other_model(block_size=1, num_blocks=64, prefix_caching=True)
    assert steps_of(sharing, requests, max_num_seqs=12) == expected
    assert sharing.num_recomputed > 0


def test_preempted_sequences_keep_what_the_draft_model_has_computed() -> None:
    draft_model = other_model()
    engine = engine_with(draft_model, max_num_seqs=8, num_blocks=26)
    records = serve(engine, requests_of(12))
    plain = serve(checked_engine(model=PagedModel(TABLE, block_size=4), max_model_len=CONTEXT), requests_of(12))
    assert [token_ids_of(record) for record in records] == [token_ids_of(record) for record in plain]
    assert engine.scheduler.num_preemptions > 0
    assert all(spec_of(record)["num_accepted_draft_tokens"] > 0 for record in records)
    assert draft_model.num_recomputed == 0


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
        return RuntimeError("boom")

    draft_model = Checked(make_draft_model(model=FailingModel(TABLE, failing=[4], error=error)))
    engine = engine_with(draft_model, max_num_seqs=2)
    codes = [token_ids_of(record) for record in serve(engine, requests_of(4, max_tokens=12))]
    assert codes[:2] == ["engine_error"] * 2
    assert all(code != "engine_error" for code in codes[2:])
    assert ends_clean(draft_model)
