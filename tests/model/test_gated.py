"""Gates combined with what they gate strip by strip: the same bits as by one product and the activation behind it."""

import numpy as np
import pytest
import torch

from batchspec.model.linear import pack_linear
from batchspec.model.native.feeding import StripFeed, pack_feed
from batchspec.model.room import Room

from .test_linear import packed, random

HIDDEN = 40


def feed(width: int, *, packing: str, is_silu: bool, gate_bias: bool = False, down_bias: bool = False) -> StripFeed:
    """Return a feed-forward part of random weights."""
    made = pack_feed(
        (random(2 * width, HIDDEN, seed=1).bfloat16(), random(2 * width, seed=2) if gate_bias else None),
        (random(HIDDEN, width, seed=3).bfloat16(), random(HIDDEN, seed=4) if down_bias else None),
        is_silu=is_silu,
        packing=packing,
    )
    assert isinstance(made, StripFeed) == (not gate_bias)
    return made  # type: ignore[return-value]


def placed(linear: StripFeed, rows: torch.Tensor) -> np.ndarray:
    """Return rows as the first product takes them."""
    place = linear.place(len(rows))
    numbers = rows if place.dtype == np.float32 else rows.bfloat16().view(torch.int16)
    place[:, : rows.shape[1]] = numbers.numpy().view(place.dtype)
    return place


@pytest.mark.parametrize("packing", ["strips", "pairs"])
@pytest.mark.parametrize("is_silu", [True, False])
@pytest.mark.parametrize("width", [1, 16, 23, 48, 64, 512])
def test_against_products_one_by_one(packing: str, is_silu: bool, width: int) -> None:
    part = feed(width, packing=packed(packing), is_silu=is_silu)
    assert part.shapes == [(2 * width, HIDDEN), (HIDDEN, width)]
    gate_up = pack_linear(random(2 * width, HIDDEN, seed=1).bfloat16(), packing=packing)
    down = pack_linear(random(HIDDEN, width, seed=3).bfloat16(), packing=packing)
    for num_rows in (1, 2, 7, 16, 64, 65, 230):
        rows = random(num_rows, HIDDEN, seed=5)
        gates, ups = gate_up(rows).chunk(2, dim=1)
        activate = torch.nn.functional.silu if is_silu else lambda x: torch.nn.functional.gelu(x, approximate="tanh")
        expected = down(activate(gates) * ups)
        found = torch.from_numpy(part(placed(part, rows), room=Room()))
        tolerance = 1e-5 if packing == "strips" else 1e-2  # bfloat16 may be rounded the other way
        assert float((found - expected).abs().max()) <= tolerance * max(1.0, float(expected.abs().max())), num_rows


@pytest.mark.parametrize("packing", ["strips", "pairs"])
@pytest.mark.parametrize("width", [23, 64])
def test_the_bits_are_those_of_the_separate_way(packing: str, width: int) -> None:
    """A bias of zeros takes it."""
    fused = feed(width, packing=packed(packing), is_silu=False)
    separate = pack_feed(
        (random(2 * width, HIDDEN, seed=1).bfloat16(), torch.zeros(2 * width)),
        (random(HIDDEN, width, seed=3).bfloat16(), None),
        is_silu=False,
        packing=packing,
    )
    for num_rows in (1, 3, 64, 300):
        rows = placed(fused, random(num_rows, HIDDEN, seed=6))
        assert (fused(rows, room=Room()) == separate(rows, room=Room())).all(), num_rows


@pytest.mark.parametrize("packing", ["strips", "pairs"])
def test_bits_depend_neither_on_neighbours_nor_on_threads(packing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchspec.model.strips.linear._WORTH_THREADS", 0)
    part, rows = feed(48, packing=packed(packing), is_silu=True), random(210, HIDDEN, seed=7)
    expected = part(placed(part, rows), room=Room())
    for num_threads in (1, 3):
        torch.set_num_threads(num_threads)
        for first, last in ((0, 1), (5, 70), (100, 210)):
            found = part(placed(part, rows[first:last]), room=Room())
            assert (found == expected[first:last]).all(), (num_threads, first)


def test_biases_are_added() -> None:
    plain = feed(32, packing="strips", is_silu=True)
    biased = feed(32, packing="strips", is_silu=True, down_bias=True)
    rows = placed(plain, random(3, HIDDEN, seed=8))
    expected = plain(rows, room=Room()) + random(HIDDEN, seed=4).numpy()
    assert (biased(rows, room=Room()) == expected).all()
