"""What is computed the quick way is what the plain way gives."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.params import SamplingParams
from batchspec.sampling import gumbel_noise, noise_key, truncate
from batchspec.sampling.candidates import find_candidates
from batchspec.sampling.draw import draw, draw_among, draw_on_device
from batchspec.sampling.largest import largest
from batchspec.sampling.noise import signed
from batchspec.sampling.truncation import scale


@settings(max_examples=60)
@given(seed=st.integers(0, 2**63), spread=st.sampled_from([0.0, 0.1, 3.0, 30.0]), size=st.integers(1, 3000))
def test_the_draw_is_the_largest_logit_plus_noise(seed: int, spread: float, size: int) -> None:
    generator = torch.Generator().manual_seed(seed % 2**31)
    logits = torch.randn(3, size, generator=generator).double() * spread
    logits[torch.rand(3, size, generator=generator) < 0.3] = -torch.inf
    logits[:, seed % size] = 0.0
    keys = [noise_key(seed=seed, sample_index=i, position=7) for i in range(3)]
    key = torch.tensor([signed(key) for key in keys])[:, None].expand(-1, size)
    expected = (logits + gumbel_noise(key, torch.arange(size)[None].expand(3, -1))).argmax(dim=-1)
    numbers = np.array(keys, dtype=np.uint64)
    zeros, ones = np.zeros(3), np.ones(3)
    assert draw(logits, highest=zeros, temperature=ones, keys=numbers).tolist() == expected.tolist()
    shifted = logits[[2, 0]] * 0.7 + 1.5
    again = draw(shifted, highest=zeros[:2] + 1.5, temperature=ones[:2] * 0.7, keys=numbers[[2, 0]])
    assert again.tolist() == expected[[2, 0]].tolist()
    assert draw_on_device(logits, keys).tolist() == expected.tolist()


@pytest.mark.parametrize("size", [257, 512, 1024, 5120])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_largest_is_the_first_of_the_largest(size: int, dtype: torch.dtype) -> None:
    logits = torch.randint(0, 50, (40, size), generator=torch.Generator().manual_seed(size)).to(dtype)
    logits[1] = -torch.inf
    logits[2, size // 2] = torch.nan
    logits[3, size - 1] = torch.inf
    ids, is_finite = largest(logits)
    assert ids.tolist() == logits.argmax(dim=-1).tolist()
    assert is_finite.tolist() == [row not in (1, 2, 3) for row in range(40)]
    assert [each.shape for each in largest(logits[:0])] == [(0,), (0,)]


@settings(max_examples=80)
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.0, 1.0, 8.0]), top_p=st.floats(1e-6, 1 - 1e-6))
def test_the_nucleus_is_that_of_the_whole_row_sorted(seed: int, spread: float, top_p: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(4, 700, generator=generator).double() * spread
    logits[0] = logits[0].round()  # with ties
    logits[1, 20:] = -torch.inf
    values, order = logits.sort(dim=-1, stable=True)
    below = values.softmax(dim=-1).cumsum(dim=-1)
    removed = below <= 1 - top_p
    removed[:, -1] = False
    kept = truncate(logits, top_k=[0] * 4, top_p=[top_p] * 4, min_p=[0.0] * 4).gather(-1, order) > -torch.inf
    is_close = (below - (1 - top_p)).abs() < 1e-12  # decided by rounding
    assert ((kept == ~removed) | is_close | (values == -torch.inf)).all()
    assert kept[:, -1].all()


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.0, 0.5, 3.0, 20.0]),
    size=st.integers(1, 900),
    removed=st.sampled_from([0.0, 0.5, 0.99]),
    is_rounded=st.booleans(),
    params=st.lists(
        st.builds(
            SamplingParams,
            temperature=st.sampled_from([0.02, 0.7, 1.0, 2.5]),
            top_k=st.sampled_from([0, 1, 2, 5, 14, 15, 64, 1000]),
            top_p=st.sampled_from([1e-6, 0.3, 0.9, 0.95, 0.999999, 1.0]),
            min_p=st.sampled_from([0.0, 1e-9, 0.05, 0.5, 1.0]),
        ),
        min_size=1,
        max_size=6,
    ),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_candidates_are_what_the_whole_row_leaves(
    seed: int,
    spread: float,
    size: int,
    removed: float,
    is_rounded: bool,
    params: list[SamplingParams],
    dtype: torch.dtype,
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(params), size, generator=generator) * spread
    logits = (logits.round() if is_rounded else logits).to(dtype)
    logits[torch.rand(logits.shape, generator=generator) < removed] = -torch.inf
    logits[:, seed % size] = 0.5
    expected = truncate(
        scale(logits.double(), temperature=[each.temperature for each in params]),
        top_k=[each.top_k for each in params],
        top_p=[each.top_p for each in params],
        min_p=[each.min_p for each in params],
    )
    found = find_candidates(logits, params)
    for row, ids, scaled in zip(expected, found.ids, found.scaled, strict=True):
        kept = scaled > -torch.inf
        whole = torch.full_like(row, -torch.inf)
        whole[ids[kept]] = scaled[kept]
        assert torch.equal(whole, row)
        assert ids[kept].tolist() == sorted(ids[kept].tolist())
    keys = np.array([noise_key(seed=seed, sample_index=i, position=3) for i in range(len(params))], dtype=np.uint64)
    ones = np.ones(len(params))
    drawn = draw(expected, highest=ones * 0, temperature=ones, keys=keys)
    assert draw_among(found.scaled, ids=found.ids, keys=keys).tolist() == drawn.tolist()


@pytest.mark.parametrize("size", [1000, 32000])
@pytest.mark.parametrize("top_p", [1e-9, 0.1, 0.3, 0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("kind", ["normal", "long tail"])
def test_a_nucleus_does_not_hang_on_how_many_candidates_there_are(size: int, top_p: float, kind: str) -> None:
    dice = np.random.default_rng(size)
    tail = -1.1 * np.log(dice.permutation(size) + 1.0)
    row = torch.from_numpy((dice.normal(size=size) * 4 if kind == "normal" else tail).astype(np.float32))
    for temperature in (0.3, 0.7, 1.0, 1.5, 2.0):
        for min_p in (0.0, 0.01):
            params = SamplingParams(temperature=temperature, top_p=top_p, min_p=min_p)
            scaled = scale(row[None].double(), temperature=[temperature])
            whole = truncate(scaled, top_k=[0], top_p=[top_p], min_p=[min_p])[0]
            for together in ([params], [params, SamplingParams(temperature=2.0, top_p=0.9999)]):
                found = find_candidates(row.expand(len(together), -1), together)
                kept = found.ids[0][found.scaled[0] > -torch.inf]
                assert kept.tolist() == (whole > -torch.inf).nonzero().squeeze(-1).tolist()
                assert len(kept) > 0


def test_few_of_many_tokens_are_candidates() -> None:
    logits = torch.randn(4, 1 << 16, generator=torch.Generator().manual_seed(3)) * 4
    for changes in ({"top_k": 50}, {"top_p": 0.9}, {"min_p": 0.02}, {"top_k": 50, "top_p": 0.9}):
        found = find_candidates(logits, [SamplingParams(temperature=0.8, **changes)] * 4)
        assert found.ids.shape[1] < 1500, changes
