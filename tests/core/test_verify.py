"""The batch-level verdict against a naive one, row by row."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from batchspec.request import SamplingParams
from batchspec.step import StepPlan
from batchspec.testing import TableModel
from batchspec.verify import acceptance_mask, judge

from .sequences import decoding, sampled_chunk

drafts = st.lists(st.lists(st.integers(0, 2), max_size=4), max_size=6)


@given(drafts=drafts, data=st.data())
def test_mask_equals_the_naive_count(drafts: list[list[int]], data: st.DataObject) -> None:
    num_rows = sum(1 + len(draft) for draft in drafts)
    targets = data.draw(st.lists(st.integers(0, 2), min_size=num_rows, max_size=num_rows))
    valid = data.draw(st.lists(st.booleans(), min_size=num_rows, max_size=num_rows))
    drafting, first = [], 0
    for draft in drafts:
        if draft:
            drafting.append((first, draft))
        first += 1 + len(draft)
    mask = acceptance_mask(
        drafting, target_ids=np.array(targets, dtype=np.int64), has_target=np.array(valid, dtype=np.bool_)
    )
    width = max((len(draft) for draft in drafts), default=0)
    assert mask.shape == (len(drafting), width)
    for (start, draft), row in zip(drafting, mask.tolist(), strict=True):
        num_accepted = 0
        for i, token in enumerate(draft):
            if not valid[start + i] or targets[start + i] != token:
                break
            num_accepted += 1
        assert row == [i < num_accepted for i in range(width)]


def test_rows_belong_to_their_chunks_in_order() -> None:
    """Drafting and plain chunks side by side: each gets the targets of its own rows."""
    greedy = SamplingParams(temperature=0.0)
    chunks = [
        sampled_chunk(decoding([9, 10], sampling=greedy), [11, 12]),
        sampled_chunk(decoding([9, 20], sampling=greedy)),
        sampled_chunk(decoding([9, 30], sampling=greedy), [31, 0, 33]),
    ]
    plan = StepPlan(chunks=chunks)
    verdicts = judge(plan, TableModel.counting().forward(plan))
    assert verdicts.target_ids.tolist() == [11, 12, 13, 21, 31, 32, 1, 34]
    assert verdicts.num_drafted.tolist() == [2, 3]
    assert verdicts.accepted.tolist() == [[True, True, False], [True, False, False]]
    assert verdicts.has_target.all()


def test_a_step_without_samples_has_an_empty_verdict() -> None:
    verdicts = judge(StepPlan(chunks=[]), torch.zeros(0, 7))
    assert len(verdicts.target_ids) == len(verdicts.has_target) == len(verdicts.num_drafted) == 0
    assert verdicts.accepted.shape == (0, 0)


def test_a_plain_row_needs_a_finite_largest_logit() -> None:
    greedy = SamplingParams(temperature=0.0)
    chunk = sampled_chunk(decoding([9, 10], sampling=greedy), [0, 0, 0])
    logits = torch.zeros(4, 7)
    for row, value in enumerate((float("nan"), float("inf"), float("-inf"))):
        logits[row] = value
    verdicts = judge(StepPlan(chunks=[chunk]), logits)
    assert verdicts.has_target.tolist() == [False, False, False, True]
    assert not verdicts.accepted.any()


def test_samples_of_one_seed_have_noise_of_their_own() -> None:
    sequences = [decoding([9, 10], sampling=SamplingParams(seed=3), sample_index=i) for i in range(40)]
    plan = StepPlan(chunks=[sampled_chunk(sequence) for sequence in sequences])
    assert len(set(judge(plan, torch.zeros(40, 1000)).target_ids.tolist())) > 30
