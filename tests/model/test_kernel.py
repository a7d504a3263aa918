"""The compiled kernel and the torch operations against the definition, and the kernel's bits against themselves."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.compiled import compiled

from .paging import Layout, compute, plain

LAYOUTS = st.builds(
    Layout,
    lengths=st.lists(
        st.integers(1, 40).flatmap(lambda total: st.tuples(st.just(total), st.integers(1, total))),
        min_size=1,
        max_size=4,
    ),
    num_kv_heads=st.integers(1, 3),
    group=st.integers(1, 4),
    dim=st.sampled_from([1, 2, 7, 8, 24, 33, 64]),
    value_dim=st.sampled_from([1, 5, 16, 64]),
    block_size=st.sampled_from([1, 3, 8, 16]),
    window=st.sampled_from([0, 1, 2, 7, 100]),
    softcap=st.sampled_from([0.0, 0.5, 30.0]),
    has_sinks=st.booleans(),
    num_padding=st.integers(0, 3),
    seed=st.integers(0, 1000),
)


@given(LAYOUTS)
@settings(max_examples=150, deadline=None)
def test_both_kernels_follow_the_definition(layout: Layout) -> None:
    tensors = layout.tensors()
    expected = plain(layout, tensors)
    assert torch.allclose(compute(layout, tensors).double(), expected, atol=2e-5)
    assert torch.allclose(compute(layout, tensors, on_device=True).double(), expected, atol=2e-5)


def test_padding_rows_are_zero() -> None:
    layout = Layout(lengths=[(5, 2)], num_padding=3)
    assert torch.equal(compute(layout, layout.tensors())[2:], torch.zeros(3, 4, 8))


@given(layout=LAYOUTS, data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_row_by_itself_has_the_same_bits(layout: Layout, data: st.DataObject) -> None:
    tensors = layout.tensors()
    together = compute(layout, tensors)
    row = data.draw(st.integers(0, tensors["rows"].num_rows - 1))
    rows = tensors["rows"]
    chunk = int(rows.row_chunk[row])
    alone = type(rows)(
        num_rows=1,
        slots=rows.slots[row : row + 1],
        tables=rows.tables[chunk : chunk + 1].copy(),
        row_chunk=rows.row_chunk[row : row + 1] * 0,
        row_position=rows.row_position[row : row + 1].copy(),
        bounds=[],
    )
    found = compute(layout, tensors | {"query": tensors["query"][row : row + 1], "rows": alone})
    assert torch.equal(found[0], together[row])


def test_bits_do_not_depend_on_threads() -> None:
    layout = Layout(lengths=[(30, 9), (17, 1), (8, 8)], dim=33, num_kv_heads=3)
    tensors = layout.tensors()
    results = []
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        results.append(compute(layout, tensors))
    assert torch.equal(*results)


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
