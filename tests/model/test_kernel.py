"""The compiled kernel against the definition, and its bits against themselves."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.compiled import compiled
from batchspec.model.attending import lanes
from batchspec.model.attending.exponential import exp, tanh
from batchspec.model.attending.stored import get, put
from batchspec.model.attending.vectors import LANES

from .paging import LAYOUTS, Layout, alone, compute, plain


@given(LAYOUTS)
@settings(max_examples=150, deadline=None)
def test_the_kernel_follows_the_definition(layout: Layout) -> None:
    tensors = layout.tensors()
    assert torch.allclose(compute(layout, tensors).double(), plain(layout, tensors), atol=2e-5)


@given(LAYOUTS)
@settings(max_examples=100, deadline=None)
def test_pages_in_bfloat16_hold_what_is_rounded(layout: Layout) -> None:
    tensors = layout.tensors()
    rounded = tensors | {side: tensors[side].bfloat16().float() for side in ("keys", "values")}
    assert torch.equal(compute(layout, tensors, dtype=torch.bfloat16), compute(layout, rounded))


@compiled()
def _put_and_get(numbers: Any, shorts: Any, again: Any) -> None:
    for i in range(len(numbers)):
        put(shorts, i, numbers[i])
        again[i] = get(shorts, i)


def test_rounding_is_as_in_torch() -> None:
    numbers = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ends = [0.0, -0.0, np.inf, -np.inf, 3.4e38, 1 + 2**-8, 1 + 3 * 2**-8, 1e-45, np.nan]
    numbers = np.append(numbers, np.array(ends, dtype=np.float32))
    numbers = np.append(numbers, np.array([0x7F800001, 0xFFFFFFFF], dtype=np.uint32).view(np.float32))
    shorts, again = np.empty(len(numbers), dtype=np.uint16), np.empty_like(numbers)
    _put_and_get(numbers, shorts, again)
    expected = torch.from_numpy(numbers).bfloat16().float().numpy()
    assert np.array_equal(again, expected, equal_nan=True)


def test_padding_rows_are_zero() -> None:
    layout = Layout(lengths=[(5, 2)], num_padding=3)
    assert torch.equal(compute(layout, layout.tensors())[2:], torch.zeros(3, 4, 8))


@given(layout=LAYOUTS, data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_row_by_itself_has_the_same_bits(layout: Layout, data: st.DataObject) -> None:
    tensors = layout.tensors()
    together = compute(layout, tensors)
    row = data.draw(st.integers(0, tensors["rows"].num_rows - 1))
    assert torch.equal(compute(layout, alone(tensors, row))[0], together[row])


_SHAPES = [  # group, D, Dv, block size, window, softcap, sinks
    (1, 32, 32, 16, 0, 0.0, False),
    (2, 40, 40, 8, 0, 50.0, False),
    (3, 64, 64, 4, 21, 0.0, True),
    (4, 256, 256, 16, 0, 0.0, False),
    (5, 80, 80, 16, 33, 30.0, True),
    (6, 32, 48, 32, 0, 0.0, True),
    (7, 33, 17, 5, 3, 0.0, False),
    (8, 64, 128, 24, 48, 0.0, False),
    (30, 16, 16, 16, 0, 0.0, False),  # more heads than a tile has queries
]


@pytest.mark.parametrize(("group", "dim", "value_dim", "block_size", "window", "softcap", "has_sinks"), _SHAPES)
def test_every_row_of_a_chunk_by_itself_has_the_same_bits(
    group: int, dim: int, value_dim: int, block_size: int, window: int, softcap: float, has_sinks: bool
) -> None:
    layout = Layout(
        lengths=[(90, 40), (131, 5), (17, 17), (64, 1)],
        group=group,
        dim=dim,
        value_dim=value_dim,
        block_size=block_size,
        window=window,
        softcap=softcap,
        has_sinks=has_sinks,
    )
    tensors = layout.tensors()
    together = compute(layout, tensors)
    assert torch.allclose(together.double(), plain(layout, tensors), atol=2e-5)
    for row in range(len(together)):
        assert torch.equal(compute(layout, alone(tensors, row))[0], together[row]), row


def test_bits_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchspec.model.paging._WORTH_THREADS", 0)
    layout = Layout(lengths=[(30, 9), (17, 1), (8, 8), (90, 60)], dim=33, num_kv_heads=3, num_padding=2)
    tensors = layout.tensors()
    before = torch.get_num_threads()
    results = []
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        results.append(compute(layout, tensors))
    torch.set_num_threads(before)
    assert torch.equal(*results)


def test_what_a_row_does_not_see_cannot_spoil_it() -> None:
    layout = Layout(lengths=[(40, 8)], block_size=16)
    tensors = layout.tensors()
    rows = tensors["rows"]
    expected = compute(layout, tensors)
    block, offset = divmod(int(rows.slots[-1]), 16)
    tensors["values"][block, offset] = torch.inf
    tensors["keys"][block, offset] = torch.nan
    found = compute(layout, tensors)
    assert torch.equal(found[:-1], expected[:-1])
    assert found[-1].isnan().all()  # and what it does see is not hidden


@compiled()
def _exp_and_tanh(numbers: Any, exponentials: Any, tangents: Any) -> None:
    for i in range(0, len(numbers), LANES):
        lanes.store(exponentials, i, exp(lanes.load(numbers, i)))
        lanes.store(tangents, i, tanh(lanes.load(numbers, i)))


def test_exp_and_tanh_are_right_to_the_last_places() -> None:
    small = np.geomspace(1e-30, 87.0, 40_000, dtype=np.float32)
    numbers = -np.concatenate([small, np.linspace(0, 87, 40_000, dtype=np.float32)])
    found = np.empty_like(numbers), np.empty_like(numbers)
    _exp_and_tanh(numbers, *found)
    for function, results, places in ((np.exp, found[0], 1.2), (np.tanh, found[1], 3.0)):
        exact = function(numbers.astype(np.float64))
        assert (np.abs(results - exact) <= places * np.spacing(np.abs(exact).astype(np.float32))).all()


def test_exp_and_tanh_at_the_ends() -> None:
    numbers = np.array([-np.inf, -88.0, 0.0, np.nan, -np.inf, -1e6, 0.0, 0.0], dtype=np.float32)
    found = np.empty_like(numbers), np.empty_like(numbers)
    _exp_and_tanh(numbers, *found)
    assert np.array_equal(found[0], [0, 0, 1, np.nan, 0, 0, 1, 1], equal_nan=True)
    assert np.array_equal(found[1], [-1, -1, 0, np.nan, -1, -1, 0, 0], equal_nan=True)


_PRINT_BITS = """
import hashlib
from tests.model.paging import Layout, compute
layout = Layout(lengths=[(150, 3), (40, 1)], dim=64, value_dim=33)
print(hashlib.sha256(compute(layout, layout.tensors()).numpy().tobytes()).hexdigest())
"""


def _bits(cache: Path) -> str:
    root = Path(__file__).parents[2]
    environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(root), "PATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _PRINT_BITS], env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.slow
def test_bits_of_fresh_code_and_of_stored_code_agree(tmp_path: Path) -> None:
    first = _bits(tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("*.nbc"))  # the second process has something to load
    assert _bits(tmp_path / "cache") == first


def test_without_a_directory_for_machine_code_it_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    monkeypatch.setattr(caching.FunctionCache._impl_class, "_locator_classes", [])

    def double(number: int) -> int:
        return 2 * number

    twice = compiled()(double)
    assert twice(21) == 42
