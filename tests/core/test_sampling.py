"""Truncation, noise and choice, each against a second way to compute it."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

import batchspec.sampling.draw as drawing
from batchspec.request import SamplingParams
from batchspec.sampling import choose, gumbel_noise, noise_key, truncate
from batchspec.step import Chunk

from .sequences import decoding, sampled_chunk

MASK64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def reference(logits: torch.Tensor, *, temperature: float, top_k: int, top_p: float, min_p: float) -> torch.Tensor:
    """What transformers' own processors make of the logits."""
    processors = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        processors.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        processors.append(TopPLogitsWarper(top_p))
    if min_p:
        processors.append(MinPLogitsWarper(min_p))
    result: torch.Tensor = processors(torch.zeros(len(logits), 1, dtype=torch.long), logits)
    return result


settings_of_rows = st.fixed_dictionaries(
    {
        "top_k": st.integers(0, 14),
        "top_p": st.sampled_from([1.0, 0.99, 0.9, 0.5, 0.1, 1e-6]),
        "min_p": st.sampled_from([0.0, 0.01, 0.3, 1.0]),
    }
)


@settings(max_examples=100)
@example(seed=1, temperature=0.3, rows=[{"top_k": 1, "top_p": 0.5, "min_p": 0.0}], has_ties=True)
@given(
    seed=st.integers(0, 10_000),
    temperature=st.sampled_from([0.3, 1.0, 1.7]),
    rows=st.lists(settings_of_rows, min_size=1, max_size=4),
    has_ties=st.booleans(),
)
def test_truncation_equals_the_processors_of_transformers(
    seed: int, temperature: float, rows: list[dict[str, Any]], has_ties: bool
) -> None:
    logits = torch.randn(len(rows), 12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2
    logits = logits.round() if has_ties else logits
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in ("top_k", "top_p", "min_p")}
    ours = truncate(logits / temperature, **columns)
    theirs = torch.cat([reference(logits[i : i + 1], temperature=temperature, **row) for i, row in enumerate(rows)])
    assert torch.equal(ours, theirs)


def test_a_token_that_ties_with_the_kth_stays() -> None:
    logits = torch.tensor([[3.0, 1.0, 1.0, 1.0, 0.0]], dtype=torch.float64)
    kept = truncate(logits, top_k=[2], top_p=[1.0], min_p=[0.0]).isfinite()
    assert kept.tolist() == [[True, True, True, True, False]]


def test_nothing_to_remove_leaves_the_logits_as_they_are() -> None:
    logits = torch.randn(2, 5, dtype=torch.float64)
    assert truncate(logits, top_k=[0, 0], top_p=[1.0, 1.0], min_p=[0.0, 0.0]) is logits


@given(rows=st.lists(settings_of_rows, min_size=1, max_size=3), seed=st.integers(0, 1000))
@settings(max_examples=40)
def test_the_likeliest_token_is_never_removed(rows: list[dict[str, Any]], seed: int) -> None:
    logits = torch.randn(len(rows), 9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in ("top_k", "top_p", "min_p")}
    kept = truncate(logits, **columns)
    assert torch.equal(kept.argmax(dim=-1), logits.argmax(dim=-1))
    assert kept.amax(dim=-1).isfinite().all()


def signed(key: int) -> int:
    return key - (1 << 64) if key >> 63 else key


def noise_grid(num_keys: int, num_tokens: int) -> torch.Tensor:
    """Noise (num_keys, num_tokens) for the positions of one sample."""
    keys = [signed(noise_key(seed=5, sample_index=0, position=position)) for position in range(num_keys)]
    return gumbel_noise(
        torch.tensor(keys)[:, None].expand(-1, num_tokens), torch.arange(num_tokens).expand(num_keys, -1)
    )


def test_noise_has_the_standard_gumbel_distribution() -> None:
    """Kolmogorov-Smirnov on 40,000 values; false-alarm odds 1e-6."""
    assert stats.kstest(noise_grid(200, 200).numpy().ravel(), "gumbel_r").pvalue > 1e-6


def test_noise_of_neighbours_is_uncorrelated() -> None:
    """Uniform scores of neighbouring token ids and neighbouring positions; false-alarm odds 1.2e-6 (twice 5 sigma)."""
    scores = np.exp(-np.exp(-noise_grid(200, 200).numpy()))
    for one, other in ((scores[:, :-1], scores[:, 1:]), (scores[:-1], scores[1:])):
        correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(correlation) < 5 / np.sqrt(one.size)


def unmixed(bits: int) -> int:
    """The inverse of the 64-bit finaliser behind the noise, to reach its extremes."""

    def unshifted(value: int, count: int) -> int:
        result = value
        for _ in range(64 // count + 1):
            result = value ^ (result >> count)
        return result

    bits = unshifted(bits, 31) * pow(0x94D049BB133111EB, -1, 1 << 64) & MASK64
    bits = unshifted(bits, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & MASK64
    return unshifted(bits, 30)


def test_extremes_of_the_noise_are_finite_and_within_the_range_of_the_filter() -> None:
    def noise(bits: int) -> float:
        key = (unmixed(bits) - GOLDEN * 1) & MASK64
        return float(gumbel_noise(torch.tensor([signed(key)]), torch.tensor([0]))[0])

    lowest, highest = noise(0), noise(MASK64)
    assert -3.7 < lowest < -3.5
    assert 36 < highest < 37
    assert highest - lowest < drawing._NOISE_RANGE
    assert lowest < noise(1 << 63) < highest


@pytest.mark.parametrize("token", [1, 64, 1000])
@pytest.mark.parametrize("bits", [MASK64, MASK64 - (1 << 20), MASK64 >> 1, 3 << 62])
def test_noise_decides_however_far_below_the_largest_logit_a_token_is(bits: int, token: int) -> None:
    key = (unmixed(bits) - GOLDEN * (token + 1)) & MASK64
    noise = gumbel_noise(torch.full((2,), signed(key)), torch.tensor([0, token]))
    for nearer, expected in ((1e-9, token), (-1e-9, 0)):
        logits = torch.full((1, 1500), -torch.inf, dtype=torch.float64)
        logits[0, 0], logits[0, token] = 0.0, noise[0] - noise[1] + nearer
        top = logits.max().item()
        ones = np.ones(1)
        drawn = drawing.draw(logits, highest=ones * top, temperature=ones, keys=np.array([key], dtype=np.uint64))
        assert drawn.tolist() == [expected]


def unfiltered(chunks: list[Chunk], logits: torch.Tensor) -> torch.Tensor:
    """Gumbel-max over the whole vocabulary."""
    vocabulary = torch.arange(logits.shape[-1])
    chosen = []
    for chunk, row in zip(chunks, logits.double(), strict=True):
        params = chunk.sequence.sampling
        key = noise_key(
            seed=params.seed, sample_index=chunk.sequence.sample_index, position=chunk.start + len(chunk.token_ids)
        )
        noise = gumbel_noise(torch.tensor(signed(key)).expand(len(row)), vocabulary)
        chosen.append(int((row / params.temperature + noise).argmax()))
    return torch.tensor(chosen)


@pytest.mark.parametrize("scale", [0.0, 1.0, 8.0, 30.0, 1000.0])
def test_leaving_out_hopeless_tokens_never_changes_the_winner(scale: float) -> None:
    logits = torch.randn(300, 400, generator=torch.Generator().manual_seed(1)) * scale
    chunks = [sampled_chunk(decoding([1, 2], sampling=SamplingParams(seed=seed))) for seed in range(300)]
    assert torch.equal(choose(chunks, logits), unfiltered(chunks, logits))


def test_the_comparison_above_sees_a_filter_that_is_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.randn(300, 400, generator=torch.Generator().manual_seed(1))
    chunks = [sampled_chunk(decoding([1, 2], sampling=SamplingParams(seed=seed))) for seed in range(300)]
    keys = [noise_key(seed=seed, sample_index=0, position=2) for seed in range(300)]
    assert torch.equal(drawing.draw_on_device(logits.double(), keys), unfiltered(chunks, logits))
    monkeypatch.setattr(drawing, "_NOISE_RANGE", 3.0)
    assert not torch.equal(drawing.draw_on_device(logits.double(), keys), unfiltered(chunks, logits))


def mixed_batch() -> tuple[list[Chunk], torch.Tensor]:
    """Greedy and sampled chunks with every kind of truncation, with drafts and without."""
    kinds: list[dict[str, Any]] = [
        {"temperature": 0.0},
        {"temperature": 0.7, "top_k": 4},
        {"temperature": 1.3, "top_p": 0.8, "seed": 4},
        {"temperature": 1.0, "min_p": 0.2, "seed": -3},
        {"temperature": 2.0, "seed": 1 << 62},
    ]
    chunks = [
        sampled_chunk(decoding(list(range(2 + i)), sampling=SamplingParams(**kind), sample_index=i), [1, 2, 3][: i % 4])
        for i, kind in enumerate(kinds * 4)
    ]
    rows = sum(chunk.num_rows for chunk in chunks)
    return chunks, torch.randn(rows, 50, generator=torch.Generator().manual_seed(2)) * 3


def test_a_row_does_not_depend_on_its_batch() -> None:
    chunks, logits = mixed_batch()
    sizes = [chunk.num_rows for chunk in chunks]
    together = torch.split_with_sizes(choose(chunks, logits), sizes)
    parts = torch.split_with_sizes(logits, sizes)
    for chunk, rows, expected in zip(chunks, parts, together, strict=True):
        assert torch.equal(choose([chunk], rows), expected)
    backwards = torch.split_with_sizes(choose(chunks[::-1], torch.cat(parts[::-1])), sizes[::-1])
    assert all(torch.equal(one, other) for one, other in zip(backwards[::-1], together, strict=True))


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_row_behind_a_draft_equals_the_row_without_speculation(temperature: float) -> None:
    """The noise belongs to the absolute position, whether the text got there by a draft or token by token."""
    params = SamplingParams(temperature=temperature, seed=9)
    logits = torch.randn(4, 30, generator=torch.Generator().manual_seed(3))
    drafted = choose([sampled_chunk(decoding([1, 2, 3], sampling=params), [4, 5, 6])], logits)
    for i, tokens in enumerate(([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6])):
        assert choose([sampled_chunk(decoding(tokens, sampling=params))], logits[i : i + 1]) == drafted[i]


@pytest.mark.parametrize("temperature", [5e-324, 1e-308, 1e-30, 1e-6])
def test_the_smallest_temperatures_choose_the_likeliest_token(temperature: float) -> None:
    chunk = sampled_chunk(decoding([1, 2], sampling=SamplingParams(temperature=temperature, top_p=0.9, min_p=0.1)))
    logits = torch.tensor([[1.0, 4.0, 9.0, -3.0]])
    assert choose([chunk], logits).tolist() == [2]
    assert choose([chunk], -logits).tolist() == [3]


def test_removed_tokens_are_never_chosen_however_few_are_left() -> None:
    logits = torch.full((200, 6), -torch.inf)
    logits[:, 4] = -50.0
    chunks = [sampled_chunk(decoding([1, 2], sampling=SamplingParams(seed=seed))) for seed in range(200)]
    assert set(choose(chunks, logits).tolist()) == {4}


def test_no_rows_give_no_tokens() -> None:
    assert choose([], torch.zeros(0, 5)).tolist() == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_choose_by_the_values_they_hold(dtype: torch.dtype) -> None:
    chunks, logits = mixed_batch()
    rounded = logits.to(dtype)
    assert torch.equal(choose(chunks, rounded), choose(chunks, rounded.double()))


@given(seed=st.integers(-(2**63), 2**63 - 1), sample=st.integers(0, 200), position=st.integers(0, 10**6))
def test_keys_are_64_bits_and_differ_between_neighbours(seed: int, sample: int, position: int) -> None:
    keys = {
        noise_key(seed=seed + a, sample_index=sample + b, position=position + c)
        for a in (0, 1)
        for b in (0, 1)
        for c in (0, 1)
    }
    assert len(keys) == 8
    assert all(0 <= key <= MASK64 for key in keys)
