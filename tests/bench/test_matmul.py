"""What the floor is made of: shapes, ways to multiply, keys and values."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from batchspec.bench.matmul import CANDIDATES, MatmulPass, candidates_for
from batchspec.bench.shapes import LinearShape, kv_bytes, linear_shapes, weight_bytes
from batchspec.model.load import LoadedModel

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [name for name, way in CANDIDATES.items() if "cpu" in way.devices])
@pytest.mark.parametrize("rows", [1, 16])
def test_every_way_multiplies(name: str, rows: int) -> None:
    usable = candidates_for(dtype="bfloat16", device=CPU)
    if name not in usable:
        pytest.skip("this torch does not have it")
    weight, x = torch.randn(48, 32), torch.randn(rows, 32)
    result: Any = usable[name].prepare(weight, rows)(x)
    torch.testing.assert_close(result.float(), x @ weight.T, atol=0.3, rtol=0.05)


def test_a_float32_model_is_not_measured_against_rounded_rows() -> None:
    ways = set(candidates_for(dtype="float32", device=CPU))
    assert "torch float32" in ways
    assert not any("bfloat16" in name for name in ways)
    assert ways < set(candidates_for(dtype="bfloat16", device=CPU))


def test_a_pass_takes_the_fastest_way_of_each_shape() -> None:
    matmuls = MatmulPass(
        [LinearShape(n=16, k=8, count=3), LinearShape(n=8, k=16, count=1)], rows=2, dtype="float32", device=CPU
    )
    assert [(way["n"], way["k"], way["count"]) for way in matmuls.ways] == [(16, 8, 3), (8, 16, 1)]
    for way in matmuls.ways:
        assert way["seconds"][way["fastest"]] == min(way["seconds"].values())
    assert matmuls.seconds() > 0


def test_the_embedded_models_shapes(embedded: LoadedModel) -> None:
    """Layers may be merged, which changes their number and not what has to be multiplied."""
    shapes = linear_shapes(embedded)
    assert LinearShape(n=1280, k=192, count=1) in shapes
    per_layer = 2 * 192 * 192 + 2 * 64 * 192 + 3 * 512 * 192
    assert sum(shape.n * shape.k * shape.count for shape in shapes) == 1280 * 192 + 8 * per_layer
    assert weight_bytes(embedded) > 6_000_000
    assert kv_bytes(embedded, context=100) == 100 * embedded.bytes_per_token


def test_a_window_limits_what_is_read() -> None:
    loaded: Any = SimpleNamespace(network=SimpleNamespace(windows=(10, 10, 0)), bytes_per_token=30)
    assert kv_bytes(loaded, context=4) == 4 * 30
    assert kv_bytes(loaded, context=100) == 10 * (10 + 10 + 100)
