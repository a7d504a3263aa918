"""What is computed the quick way is what the plain way gives."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.sampling import gumbel_noise, noise_key, truncate
from batchspec.sampling.draw import draw, draw_on_device
from batchspec.sampling.largest import largest
from batchspec.sampling.noise import signed


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
