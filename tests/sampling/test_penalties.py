"""Bias and penalties against transformers' own processors and the written-out formula, behind random drafts."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import RepetitionPenaltyLogitsProcessor

from batchspec.params import SamplingParams

from .contexts import VOCAB, Context, processed, random_context, random_logits, reference, subtracted

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("penalty", [0.5, 1.3])
def test_repetition_penalty_equals_transformers_over_prompt_and_output(seed: int, penalty: float) -> None:
    dice = np.random.default_rng(seed)
    context = random_context(dice, sampling=SamplingParams(repetition_penalty=penalty))
    logits = random_logits(dice, len(context.draft) + 1)
    assert torch.equal(processed(context, logits), reference(context, logits))


def test_prompt_and_output_are_told_apart() -> None:
    """Prompt tokens count for the repetition penalty alone; the draft before a row counts as output."""
    prompt, output, draft = [1, 2, 3], [3, 4], [5, 4]
    logits = random_logits(np.random.default_rng(0), 3, 10).double()
    kinds: dict[str, dict[str, Any]] = {
        "repetition_penalty": {"repetition_penalty": 1.5},
        "frequency_penalty": {"frequency_penalty": 0.5},
        "presence_penalty": {"presence_penalty": 0.5},
    }
    touched = {}
    for name, kind in kinds.items():
        context = Context(prompt=prompt, output=output, draft=draft, sampling=SamplingParams(**kind))
        changed = processed(context, logits) != logits
        touched[name] = [row.nonzero().squeeze(-1).tolist() for row in changed]
    for i in range(3):
        ids = torch.tensor([prompt + output + draft[:i]])
        for name, ignored in (("repetition_penalty", 0), ("frequency_penalty", 3), ("presence_penalty", 3)):
            theirs = RepetitionPenaltyLogitsProcessor(1.5, prompt_ignore_length=ignored)(ids, logits[i : i + 1])
            assert touched[name][i] == (theirs != logits[i : i + 1])[0].nonzero().squeeze(-1).tolist(), (name, i)
    assert touched["repetition_penalty"] == [[1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]
    assert touched["presence_penalty"] == [[3, 4], [3, 4, 5], [3, 4, 5]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "penalties",
    [{"frequency_penalty": 0.7}, {"presence_penalty": -1.1}, {"frequency_penalty": -0.3, "presence_penalty": 1.9}],
)
def test_frequency_and_presence_follow_the_formula(seed: int, penalties: dict[str, Any]) -> None:
    dice = np.random.default_rng(seed)
    sampling = SamplingParams(**penalties)
    context = random_context(dice, sampling=sampling)
    logits = random_logits(dice, len(context.draft) + 1)
    expected = torch.stack(
        [row - subtracted(context.output + context.draft[:i], sampling, VOCAB) for i, row in enumerate(logits.double())]
    )
    torch.testing.assert_close(processed(context, logits), expected, rtol=0, atol=1e-14)


def test_a_token_is_counted_once_for_each_time() -> None:
    sampling = SamplingParams(frequency_penalty=0.5, presence_penalty=2.0)
    context = Context(prompt=[1, 1, 1], output=[2, 2, 3], draft=[2, 3], sampling=sampling)
    ours = processed(context, torch.zeros(3, 5))
    assert ours.tolist() == [
        [0.0, 0.0, -3.0, -2.5, 0.0],
        [0.0, 0.0, -3.5, -2.5, 0.0],
        [0.0, 0.0, -3.5, -3.0, 0.0],
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_bias_equals_transformers(seed: int) -> None:
    """Quarters, since transformers keeps the bias in float32."""
    dice = np.random.default_rng(seed)
    tokens = dice.choice(VOCAB, size=int(dice.integers(1, 9)), replace=False).tolist()
    bias = tuple((token, float(dice.integers(-400, 400)) / 4) for token in tokens)
    context = random_context(dice, sampling=SamplingParams(logit_bias=bias))
    logits = random_logits(dice, len(context.draft) + 1)
    assert torch.equal(processed(context, logits), reference(context, logits))


ORDERS: list[tuple[dict[str, Any], float]] = [
    ({"logit_bias": ((2, 3.0),), "repetition_penalty": 2.0}, 2.0),  # (1 + 3) / 2
    ({"repetition_penalty": 2.0, "frequency_penalty": 0.25}, 0.25),  # 1 / 2 - 0.25
    ({"repetition_penalty": 2.0, "presence_penalty": 1.5}, -1.0),  # 1 / 2 - 1.5
    ({"logit_bias": ((2, -3.0),), "repetition_penalty": 2.0}, -4.0),  # (1 - 3) * 2
    ({"logit_bias": ((2, 100.0),), "allowed_token_ids": (1,)}, -torch.inf),  # what is removed stays so
]


@pytest.mark.parametrize(("values", "expected"), ORDERS)
def test_the_order_is_removal_bias_repetition_then_the_other_two(values: dict[str, Any], expected: float) -> None:
    context = Context(prompt=[1], output=[2], sampling=SamplingParams(**values))
    assert processed(context, torch.ones(1, 4))[0, 2] == expected


def test_the_raw_logits_stay_as_they_are() -> None:
    context = Context(
        prompt=[1],
        output=[2],
        sampling=SamplingParams(repetition_penalty=2.0, logit_bias=((2, 1.0),)),
        bad_words=((1,),),
    )
    logits = torch.ones(1, 4, dtype=torch.float64)
    processed(context, logits)
    assert torch.equal(logits, torch.ones(1, 4, dtype=torch.float64))
