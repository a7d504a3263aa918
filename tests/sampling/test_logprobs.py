"""Log probabilities against torch.log_softmax of the processed logits, ranks and lists against full sorts."""

from typing import Any

import numpy as np
import pytest
import torch

from batchspec.params import SamplingParams
from batchspec.sampling import decide, logprobs, score_prompt, token_logprobs
from batchspec.sequence import TokenLogprobs
from batchspec.step import Chunk, StepPlan
from batchspec.verify import judge

from .contexts import Context, random_logits, reference

SAMPLING: dict[str, Any] = {
    "repetition_penalty": 1.3,
    "presence_penalty": 0.5,
    "logit_bias": ((5, 1.5),),
    "min_tokens": 2,
}


def expected(logits: torch.Tensor, token_id: int, num_top: int) -> TokenLogprobs:
    """One row, by sorting everything: by probability, then by id."""
    logprobs = logits.double().log_softmax(dim=-1).tolist()
    order = sorted(range(len(logprobs)), key=lambda token: (-logprobs[token], token))
    top = [(token, logprobs[token]) for token in order[:num_top] if logprobs[token] > -torch.inf]
    rank = 1 + sum(value > logprobs[token_id] for value in logprobs)
    return TokenLogprobs(token_id=token_id, logprob=logprobs[token_id], rank=rank, top=tuple(top))


def assert_close(ours: TokenLogprobs, theirs: TokenLogprobs) -> None:
    assert (ours.token_id, ours.rank) == (theirs.token_id, theirs.rank)
    assert [token for token, _ in ours.top] == [token for token, _ in theirs.top]
    assert ours.logprob == pytest.approx(theirs.logprob, abs=1e-13)
    assert [value for _, value in ours.top] == pytest.approx([value for _, value in theirs.top], abs=1e-13)


@pytest.mark.parametrize("num_top", [0, 1, 5, 40, 100])
@pytest.mark.parametrize(
    "values", [{"temperature": 0.0, "top_k": 3}, {"temperature": 0.7}, {"temperature": 1.4, "top_k": 7, "min_p": 0.05}]
)
def test_of_the_processed_distribution(values: dict[str, Any], num_top: int) -> None:
    """At temperature 0 that of temperature 1 without truncation."""
    for seed in range(10):
        dice = np.random.default_rng(seed)
        sampling = SamplingParams(seed=seed, logprobs=num_top, **SAMPLING | values)
        context = Context(
            prompt=[1, 2], output=[3], draft=[4, 5, 4], sampling=sampling, bad_words=((5, 8),), stop_ids=frozenset({9})
        )
        logits = random_logits(dice, 4)
        final = reference(context, logits, has_temperature=sampling.temperature > 0)
        choices = decide([context.chunk()], logits)
        assert list(choices.logprobs) == [0, 1, 2, 3]
        for row, told in choices.logprobs.items():
            assert_close(told, expected(final[row], int(choices.target_ids[row]), num_top))


def test_only_for_those_who_ask_keyed_by_logit_row() -> None:
    kinds: list[dict[str, Any]] = [
        {"temperature": 0.0},
        {"temperature": 0.0, "logprobs": 2},
        {"temperature": 1.0},
        {"temperature": 1.0, "logprobs": 0},
    ]
    chunks = [Context(prompt=[1], output=[2], draft=[3], sampling=SamplingParams(**kind)).chunk() for kind in kinds]
    logits = random_logits(np.random.default_rng(0), 8)
    verdicts = judge(StepPlan(chunks=chunks), logits)
    assert sorted(verdicts.logprobs) == [2, 3, 6, 7]
    for row, told in verdicts.logprobs.items():
        assert_close(told, expected(logits[row], int(verdicts.target_ids[row]), 2 if row < 4 else 0))


def test_greedy_targets_have_rank_1_and_head_the_list() -> None:
    context = Context(prompt=[1], output=[2], draft=[3] * 5, sampling=SamplingParams(temperature=0.0, logprobs=3))
    logits = random_logits(np.random.default_rng(1), 6).round()  # with ties
    choices = decide([context.chunk()], logits)
    assert choices.target_ids.tolist() == logits.argmax(dim=-1).tolist()
    for row, told in choices.logprobs.items():
        assert (told.rank, told.top[0]) == (1, (told.token_id, told.logprob))
        assert told.token_id == choices.target_ids[row]


def test_ties_share_the_better_rank_and_are_listed_by_id() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0, 2.0, 2.0]] * 3, dtype=torch.float64)
    told = token_logprobs(logits, token_ids=[3, 4, 0], num_top=[1, 3, 9])
    assert [score.rank for score in told] == [1, 3, 6]
    assert [[token for token, _ in score.top] for score in told] == [[1], [1, 3, 2], [1, 3, 2, 4, 5, 0]]


def test_many_ties_at_random_equal_the_full_sort() -> None:
    dice = np.random.default_rng(5)
    logits = torch.from_numpy(dice.integers(0, 4, size=(200, 60))).double()
    logits[torch.from_numpy(dice.random((200, 60)) < 0.5)] = -torch.inf
    logits[:, 7] = 2.0
    told = token_logprobs(logits, token_ids=[7] * 200, num_top=[i % 64 for i in range(200)])
    for i, score in enumerate(told):
        assert_close(score, expected(logits[i], 7, i % 64))


def test_tokens_of_probability_zero_are_not_listed() -> None:
    sampling = SamplingParams(allowed_token_ids=(2, 6), logprobs=5)
    choices = decide([Context(prompt=[1], sampling=sampling).chunk()], torch.zeros(1, 9))
    assert [token for token, _ in choices.logprobs[0].top] == [2, 6]
    assert [value for _, value in choices.logprobs[0].top] == pytest.approx([np.log(0.5)] * 2)


def scored_chunk(prompt: list[int], *, start: int, num_tokens: int, num_rows: int, num_top: int) -> Chunk:
    """A prefill chunk with prompt rows; it samples if it reaches the prompt's end."""
    sampling = SamplingParams(temperature=0.5, top_k=2, prompt_logprobs=num_top, repetition_penalty=3.0)
    sequence = Context(prompt=prompt, sampling=sampling).chunk().sequence
    return Chunk(
        sequence=sequence,
        start=start,
        token_ids=sequence.tokens[start : start + num_tokens],
        draft=[],
        samples=start + num_tokens == len(prompt),
        num_prompt_rows=num_rows,
    )


@pytest.mark.parametrize("rows_of_a_block", [1, 2, 1000])
def test_prompt_tokens_under_the_raw_distribution(rows_of_a_block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole prompt, the middle of one, and a decoding chunk between; their rows stand behind all sampled rows."""
    monkeypatch.setattr(logprobs, "_BLOCK_SIZE", rows_of_a_block * 40)
    chunks = [
        scored_chunk([5, 6, 7, 8], start=0, num_tokens=4, num_rows=3, num_top=2),
        Context(prompt=[1], output=[2], draft=[3, 4], sampling=SamplingParams(temperature=0.0)).chunk(),
        scored_chunk([9, 8, 7, 6, 5, 4], start=1, num_tokens=3, num_rows=3, num_top=0),
    ]
    plan = StepPlan(chunks=chunks)
    logits = random_logits(np.random.default_rng(2), 1 + 3 + 3 + 3)
    verdicts = judge(plan, logits)
    assert len(verdicts.target_ids) == 4
    scores = verdicts.prompt_logprobs
    assert scores == score_prompt(plan, logits)
    assert {position: len(told) for position, told in scores.items()} == {0: 3, 1: 3}
    for row, told, token, num_top in zip(
        range(4, 10), scores[0] + scores[1], [6, 7, 8, 7, 6, 5], [2, 2, 2, 0, 0, 0], strict=True
    ):
        assert_close(told, expected(logits[row], token, num_top))


def test_a_step_that_only_scores_has_no_targets() -> None:
    plan = StepPlan(chunks=[scored_chunk([5, 6, 7, 8], start=0, num_tokens=2, num_rows=2, num_top=1)])
    verdicts = judge(plan, random_logits(np.random.default_rng(3), 2))
    assert len(verdicts.target_ids) == len(verdicts.has_target) == 0
    assert [told.token_id for told in verdicts.prompt_logprobs[0]] == [6, 7]
