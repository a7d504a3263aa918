"""Gumbel draws follow the processed distribution in every row of a draft.

Seeds are fixed, so a test passes or fails for good. A chi-square fails at p < 1e-6: with 16 of them, the odds that a
correct sampler fails any are 1.6e-5.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from batchspec.params import SamplingParams
from batchspec.sampling import choose

from .contexts import Context, reference

LOGITS = torch.tensor([[0.3, -0.8, 1.9, 0.9, -0.4, 1.4, -1.5, 0.1]]).expand(4, -1)
NUM_DRAWS = 3000
CASES: dict[str, dict[str, Any]] = {
    "penalties": {"repetition_penalty": 1.3, "frequency_penalty": 0.3, "presence_penalty": 0.2},
    "bias": {"logit_bias": ((1, 1.5), (2, -0.75)), "temperature": 1.4},
    "removal": {"allowed_token_ids": (0, 2, 3, 4, 5), "min_tokens": 2, "temperature": 0.8},
    "all": {
        "repetition_penalty": 1.2,
        "frequency_penalty": 0.2,
        "logit_bias": ((4, 0.5),),
        "min_tokens": 3,
        "top_k": 6,
        "top_p": 0.95,
        "min_p": 0.05,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_processed_distribution(name: str) -> None:
    context = Context(
        prompt=[2, 1],
        output=[5],
        draft=[2, 2, 3],
        sampling=SamplingParams(**CASES[name]),
        bad_words=((2, 2, 5),),
        stop_ids=frozenset({0}),
    )
    chunks = [replace(context, sampling=SamplingParams(seed=seed, **CASES[name])).chunk() for seed in range(NUM_DRAWS)]
    drawn = choose(chunks, LOGITS.repeat(NUM_DRAWS, 1)).reshape(NUM_DRAWS, 4).numpy()
    probs = reference(context, LOGITS, has_temperature=True).softmax(dim=-1).numpy()
    for i in range(4):
        counts = np.bincount(drawn[:, i], minlength=8)
        possible = probs[i] > 0
        assert counts[~possible].sum() == 0, "a token that was removed was drawn"
        assert (probs[i][possible] * NUM_DRAWS > 5).all(), "too rare for the chi-square law"
        assert stats.chisquare(counts[possible], probs[i][possible] * NUM_DRAWS).pvalue > 1e-6
    assert not np.allclose(probs, probs[0]), "the draft changes nothing: the test is blind to it"
