"""Sampled tokens have exactly the processed distribution, with drafts and without, and rows are independent.

Seeds are fixed, so a test passes or fails for good. A chi-square fails at p < 1e-6: with 44 of them, the odds that a
correct sampler fails any are 4.4e-5.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from batchspec.acceptance import Level
from batchspec.request import SamplingParams
from batchspec.sampling import choose
from batchspec.step import StepPlan
from batchspec.testing import ScriptedDrafter, TableModel
from batchspec.verify import judge

from .runs import ask, checked_engine, reconciliation_of, serve, token_ids_of
from .sequences import decoding, sampled_chunk

LOWEST_P = 1e-6
VOCAB = 8
LOGITS = torch.tensor([0.3, -1.2, 1.9, 0.9, -0.4, 1.4, -2.5, 0.1])
TABLE = torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(7))
TEMPERATURES = (0.5, 1.0, 1.7)
TRUNCATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"top_k": 3},
    {"top_p": 0.8},
    {"min_p": 0.15},
    {"top_k": 5, "top_p": 0.7},
    {"top_k": 6, "top_p": 0.95, "min_p": 0.1},
)
cases = pytest.mark.parametrize(
    ("temperature", "truncation"), list(product(TEMPERATURES, TRUNCATIONS)), ids=lambda value: str(value)
)


def exact_probs(
    logits: NDArray[np.float64], *, temperature: float, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> NDArray[np.float64]:
    """The distribution by definition: temperature, then the k likeliest, then the nucleus, then the floor."""
    weights = np.exp(logits / temperature)
    order = [int(token) for token in np.argsort(-weights)]
    kept = order[:top_k] if top_k else order
    total, nucleus, reached = sum(weights[kept]), [], 0.0
    for token in kept:
        if reached >= top_p:
            break
        nucleus.append(token)
        reached += weights[token] / total
    kept = [token for token in nucleus if weights[token] >= min_p * weights[nucleus[0]]]
    probs = np.zeros(len(logits))
    probs[kept] = weights[kept] / sum(weights[kept])
    return probs


def chi_square(counts: NDArray[np.int64], probs: NDArray[np.float64]) -> tuple[float, int]:
    """Statistic and degrees of freedom; a count where the probability is zero fails at once.

    Cells are put together, from the rarest on, until 5 draws are expected in each, as the chi-square law needs.
    """
    assert counts[probs == 0].sum() == 0, "a token that was removed was drawn"
    cells: list[tuple[float, int]] = []
    expected, seen = 0.0, 0
    for token in np.argsort(probs):
        expected += float(counts.sum() * probs[token])
        seen += int(counts[token])
        if expected >= 5:
            cells.append((expected, seen))
            expected, seen = 0.0, 0
    return sum((seen - expected) ** 2 / expected for expected, seen in cells), max(0, len(cells) - 1)


def p_value(*parts: tuple[float, int]) -> float:
    """The odds of a chi-square sum at least this large."""
    statistic, freedom = (sum(column) for column in zip(*parts, strict=True))
    return float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0


@cases
def test_without_drafts(temperature: float, truncation: dict[str, Any]) -> None:
    chunks = [
        sampled_chunk(decoding([1, 2], sampling=SamplingParams(temperature=temperature, seed=seed, **truncation)))
        for seed in range(3000)
    ]
    drawn = choose(chunks, LOGITS.expand(len(chunks), -1)).numpy()
    probs = exact_probs(LOGITS.double().numpy(), temperature=temperature, **truncation)
    assert p_value(chi_square(np.bincount(drawn, minlength=VOCAB), probs)) > LOWEST_P


@cases
def test_with_drafts(temperature: float, truncation: dict[str, Any]) -> None:
    """What is emitted after each token, drafted or not, has that token's own distribution."""
    dice = np.random.default_rng(11)
    chunks = [
        sampled_chunk(
            decoding([1, 2], sampling=SamplingParams(temperature=temperature, seed=seed, **truncation)),
            [int(token) for token in dice.choice([2, 3, 5], size=3)],
        )
        for seed in range(1500)
    ]
    plan = StepPlan(chunks=chunks)
    verdicts = judge(plan, TableModel(TABLE).forward(plan))
    counts = np.zeros((VOCAB, VOCAB), dtype=np.int64)
    targets = verdicts.target_ids.reshape(-1, 4)
    for chunk, row, accepted in zip(chunks, targets, verdicts.accepted.sum(axis=1), strict=True):
        for before, token in zip([2, *chunk.draft], row[: accepted + 1], strict=False):
            counts[before, token] += 1
    assert counts[2].sum() > 1500, "the first draft token was never accepted"
    parts = [
        chi_square(counts[before], exact_probs(TABLE[before].double().numpy(), temperature=temperature, **truncation))
        for before in range(VOCAB)
        if counts[before].sum() > 30
    ]
    assert p_value(*parts) > LOWEST_P


NEIGHBOURS: dict[str, list[dict[str, Any]]] = {
    "positions": [{"tokens": [1, 2]}, {"tokens": [1, 2, 2]}],
    "distant positions": [{"tokens": [1, 2]}, {"tokens": [1, 2] * 32}],
    "samples": [{"sample_index": 0}, {"sample_index": 1}],
    "seeds": [{"step": 0}, {"step": 1}],
    "position against sample": [{"tokens": [1, 2, 2]}, {"sample_index": 1}],
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbouring_rows_are_independent(name: str) -> None:
    def draw(*, tokens: list[int] | None = None, sample_index: int = 0, step: int = 0) -> NDArray[np.int64]:
        chunks = [
            sampled_chunk(
                decoding(tokens or [1, 2], sampling=SamplingParams(seed=2 * seed + step), sample_index=sample_index)
            )
            for seed in range(3000)
        ]
        drawn: NDArray[np.int64] = choose(chunks, LOGITS.expand(len(chunks), -1)).numpy()
        return drawn

    one, other = (draw(**kwargs) for kwargs in NEIGHBOURS[name])
    probs = exact_probs(LOGITS.double().numpy(), temperature=1.0)
    pairs = np.bincount(one * VOCAB + other, minlength=VOCAB * VOCAB)
    assert p_value(chi_square(pairs, np.outer(probs, probs).ravel())) > LOWEST_P


def sampled_run(*, with_drafts: bool) -> list[list[list[int]] | str]:
    """Three tokens from each of 1000 seeds; drafts are the likeliest tokens, three at a time."""
    likely = TABLE.argmax(dim=-1).tolist()

    def script(sequence: Any) -> list[int]:
        draft = [int(sequence.tokens[sequence.num_tokens - 1])]
        for _ in range(3):
            draft.append(likely[draft[-1]])
        return draft[1:]

    engine = checked_engine(
        model=TableModel(TABLE),
        drafter=ScriptedDrafter(num_spec_tokens=3, script=script) if with_drafts else None,
        level=Level.SUMMARY if with_drafts else Level.NONE,
        max_num_seqs=256,
        max_num_batched_tokens=1024,
        max_model_len=8,
        eos_ids=frozenset(),
    )
    records = serve(engine, [ask([2], index=i, seed=i, max_tokens=3, temperature=1.0) for i in range(1000)])
    if with_drafts:
        assert reconciliation_of(engine, records).is_exact
        assert engine.progress.num_accepted_draft_tokens > 300
    return [token_ids_of(record) for record in records]


def test_text_is_the_same_with_drafts_and_has_the_exact_joint_distribution() -> None:
    drafted, plain = sampled_run(with_drafts=True), sampled_run(with_drafts=False)
    assert drafted == plain
    probs = np.stack([exact_probs(row, temperature=1.0) for row in TABLE.double().numpy()])
    triples = np.array([answer[0] for answer in drafted])
    counts = np.zeros((VOCAB, VOCAB, VOCAB), dtype=np.int64)
    np.add.at(counts, tuple(triples.T), 1)
    joint = probs[2][:, None, None] * probs[:, :, None] * probs[None, :, :]
    singles = chi_square(counts.sum(axis=(1, 2)), joint.sum(axis=(1, 2)))
    pairs = chi_square(counts.sum(axis=2).ravel(), joint.sum(axis=2).ravel())
    last = chi_square(counts.sum(axis=(0, 1)), joint.sum(axis=(0, 1)))
    assert min(p_value(singles), p_value(pairs), p_value(last)) > LOWEST_P
