"""A draft model that draws with the target's noise agrees with it as often as theory says, and more than by chance.

Seeds are fixed, so a test passes or fails for good. Each of the tests fails a correct program at p < 1e-6: with three
pairs of distributions and two tests of each, the odds that any does are 6e-6.
"""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from batchspec.acceptance import Level
from batchspec.drafting import Drafter
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.sequence import Sequence
from batchspec.testing import ScriptedDrafter, TableModel, make_draft_model

from .runs import ask, checked_engine, serve, spec_of

LOWEST_P = 1e-6
VOCAB = 8
K = 3
NUM_TRIALS = 4000
TARGET = torch.tensor([0.3, -1.2, 1.9, 0.9, -0.4, 1.4, -2.5, 0.1])
OTHER = torch.randn(VOCAB, generator=torch.Generator().manual_seed(3))
pairs = pytest.mark.parametrize("draft", [TARGET + 0.5 * OTHER, 0.4 * TARGET, 1.5 * OTHER], ids=["near", "flat", "far"])


def probs_of(logits: torch.Tensor) -> NDArray[np.float64]:
    probs: NDArray[np.float64] = logits.double().softmax(dim=-1).numpy()
    return probs


def agreement(target_probs: NDArray[np.float64], draft_probs: NDArray[np.float64]) -> float:
    """The odds that both choose the same token with the same noise."""
    ratios = np.maximum(
        target_probs[None, :] / target_probs[:, None], draft_probs[None, :] / draft_probs[:, None]
    )  # row i, column j
    return float((1 / ratios.sum(axis=1)).sum())


def model_of(logits: torch.Tensor) -> TableModel:
    """A model with the same distribution after every token."""
    return TableModel(logits.expand(VOCAB, VOCAB).contiguous())


def histogram_with(drafter: Drafter) -> NDArray[np.int64]:
    """In how many of the trials 0, 1, 2 and 3 draft tokens were accepted; every request has a single step."""
    engine = checked_engine(
        model=model_of(TARGET),
        drafter=drafter,
        level=Level.SUMMARY,
        max_num_seqs=256,
        max_num_batched_tokens=1024,
        max_model_len=8,
        eos_ids=frozenset(),
    )
    requests = [ask([2], index=seed, seed=seed, max_tokens=2, temperature=1.0) for seed in range(NUM_TRIALS)]
    histograms = [spec_of(record)["acceptance_histogram"] for record in serve(engine, requests)]
    assert all(sum(histogram) == 1 for histogram in histograms)
    counts: NDArray[np.int64] = np.sum(histograms, axis=0)
    return counts


def coupled(draft: torch.Tensor) -> Drafter:
    model = make_draft_model(model=model_of(draft), num_vocabulary=VOCAB, num_blocks=1024, max_num_batched_tokens=1024)
    return DraftModelDrafter(num_spec_tokens=K, draft_model=model)


def independent(draft: torch.Tensor) -> Drafter:
    dice, probs = np.random.default_rng(17), probs_of(draft)

    def script(_: Sequence) -> list[int]:
        return [int(token) for token in dice.choice(VOCAB, size=K, p=probs / probs.sum())]

    return ScriptedDrafter(num_spec_tokens=K, script=script)


def expected_with(rate: float) -> NDArray[np.float64]:
    """The histogram where every token that is reached is accepted at this rate."""
    return NUM_TRIALS * np.array([(1 - rate) * rate**i for i in range(K)] + [rate**K])


@pairs
def test_acceptance_has_its_closed_form(draft: torch.Tensor) -> None:
    """A chi-square over the histogram; a correct program fails at odds of 1e-6 for each pair."""
    target_probs, draft_probs = probs_of(TARGET), probs_of(draft)
    rate = agreement(target_probs, draft_probs)
    distance = np.abs(target_probs - draft_probs).sum() / 2
    assert (1 - distance) / (1 + distance) <= rate <= 1 - distance
    histogram = histogram_with(coupled(draft))
    assert stats.chisquare(histogram, expected_with(rate)).pvalue > LOWEST_P


@pairs
def test_acceptance_beats_independent_draws(draft: torch.Tensor) -> None:
    """Independent draws are accepted at their own rate, and coupled ones more often than that can explain.

    A correct program fails at odds of 1e-6 for each pair by the first assertion. The second is missed only if coupled
    acceptance falls short of its closed form by more than 20 standard deviations.
    """
    rate = float((probs_of(TARGET) * probs_of(draft)).sum())
    assert stats.chisquare(histogram_with(independent(draft)), expected_with(rate)).pvalue > LOWEST_P
    num_accepted = NUM_TRIALS - int(histogram_with(coupled(draft))[0])
    assert stats.binomtest(num_accepted, NUM_TRIALS, rate, alternative="greater").pvalue < LOWEST_P
