"""On a device tokens are chosen without asking it for anything; a device without data cannot be asked."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchspec import verify
from batchspec.params import SamplingParams
from batchspec.sampling import Choices, decide
from batchspec.sampling.nucleus import keep_nucleus, keep_nucleus_at_once
from batchspec.step import Chunk, StepPlan
from batchspec.verify import fetched_together, judge

from .contexts import Context

VOCAB = 700
CASES: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "seeded": {"temperature": 0.8, "seed": 3},
    "truncated": {"temperature": 0.8, "seed": 3, "top_k": 20, "top_p": 0.9, "min_p": 0.01},
    "penalised": {"temperature": 0.0, "repetition_penalty": 1.2, "frequency_penalty": 0.1, "logit_bias": ((3, 1.0),)},
    "limited": {"temperature": 0.7, "allowed_token_ids": (1, 5, 7), "min_tokens": 9},
}


def chunks_of(name: str) -> list[Chunk]:
    """Return three chunks of four rows each; only the first two cases leave the logits as they are."""
    bad_words = () if name in ("greedy", "seeded") else ((6,),)
    context = Context(
        prompt=[2, 1],
        output=[5],
        draft=[2, 6, 3],
        sampling=SamplingParams(**CASES[name]),
        bad_words=bad_words,
        stop_ids=frozenset({0}),
    )
    return [context.chunk() for _ in range(3)]


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_asked(name: str) -> None:
    choices = decide(chunks_of(name), torch.empty(12, VOCAB, device="meta"))
    assert {each.device.type for each in (choices.target_ids, choices.has_target, choices.is_starved)} == {"meta"}


def test_what_was_chosen_is_fetched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = []
    original = torch.Tensor.cpu

    def counted(tensor: torch.Tensor) -> torch.Tensor:
        fetched.append(tensor.shape)
        return original(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", counted)
    choices = Choices(
        target_ids=torch.tensor([5, 2**40, 0]),
        has_target=torch.tensor([True, False, True]),
        is_starved=torch.tensor([False, True, False]),
        logprobs={},
    )
    target_ids, has_target, is_starved = fetched_together(choices)
    assert fetched == [(3, 3)]
    assert target_ids.tolist() == [5, 2**40, 0]
    assert has_target.tolist() == [True, False, True]
    assert is_starved.tolist() == [False, True, False]
    assert [each.dtype.name for each in (target_ids, has_target, is_starved)] == ["int64", "bool", "bool"]


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_asks_nothing_but_what_was_chosen(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def answer(choices: Choices) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        size = len(choices.target_ids)
        return np.zeros(size, dtype=np.int64), np.ones(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)

    monkeypatch.setattr(verify, "fetched_together", answer)
    verdicts = judge(StepPlan(chunks=chunks_of(name)), torch.empty(12, VOCAB, device="meta"))
    assert verdicts.accepted.shape == (3, 3)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.0, 1.0, 8.0]), top_p=st.floats(1e-6, 1 - 1e-6))
def test_the_nucleus_at_once_is_the_nucleus(seed: int, spread: float, top_p: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(5, VOCAB, generator=generator).double() * spread
    logits[0] = logits[0].round()  # with ties
    logits[1, 20:] = -torch.inf
    logits[2] = -torch.inf
    bound = torch.full((5, 1), top_p, dtype=torch.float64)
    found, expected = keep_nucleus_at_once(logits, bound), keep_nucleus(logits, bound)
    is_decided = _is_decided(logits, top_p)
    assert torch.equal(found[is_decided], expected[is_decided])


def _is_decided(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """Return bool (rows,): whether no sum of probabilities is so close to the bound that rounding decides."""
    below = logits.sort(dim=-1).values.softmax(dim=-1).cumsum(dim=-1)
    return ((below - (1 - top_p)).abs() > 1e-12).all(dim=-1) | below.isnan().any(dim=-1)
