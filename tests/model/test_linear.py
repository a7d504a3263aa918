"""Packed weights multiply as they should, and give a row the same bits whatever its neighbours."""

import pytest
import torch

from batchspec.model.linear import can_pack, choose_packing, pack_linear, row_counts
from batchspec.model.room import Room
from batchspec.model.strips import StripLinear
from batchspec.threads import over_rows

PACKINGS = ["strips", "pairs", "half", "bfloat16"]
MOST_ROWS = 300


def packed(packing: str) -> str:
    if not can_pack(packing):
        pytest.skip(f"this processor or this torch has no kernels for {packing}")
    return packing


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize(("out", "width"), [(48, 64), (53, 40), (1, 7), (160, 700)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_product(packing: str, out: int, width: int, has_bias: bool) -> None:
    weight = (random(out, width) * 0.1).bfloat16()
    bias = random(out, seed=1).bfloat16() if has_bias else None
    rows = random(17, width, seed=2)
    expected = rows.double() @ weight.double().T + (0 if bias is None else bias.double())
    linear = pack_linear(weight, bias, packing=packed(packing))
    assert (linear.out_features, linear.in_features) == (out, width)
    tolerance = 2e-2 if packing in ("pairs", "bfloat16") else 1e-6
    assert float((linear(rows) - expected).abs().max()) < tolerance * max(1.0, width**0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_strips_of_other_types(dtype: torch.dtype) -> None:
    weight, rows = random(20, 33, seed=3).to(dtype), random(5, 33, seed=4)
    found = pack_linear(weight, packing="strips")(rows)
    assert float((found - rows.double() @ weight.double().T).abs().max()) < 2e-5


@pytest.mark.parametrize("packing", ["strips", "pairs", "half"])
def test_bits_do_not_depend_on_neighbours(packing: str) -> None:
    linear = pack_linear(random(70, 130).bfloat16(), packing=packed(packing))
    counts = row_counts(packing)
    rows = random(counts(MOST_ROWS + 3), 130, seed=5)
    expected = linear(rows)
    for num_rows in [*range(1, 70), 121, 127, 200, 255, MOST_ROWS - 40]:
        count = counts(num_rows)
        assert count >= num_rows
        assert torch.equal(linear(rows[:count])[:num_rows], expected[:num_rows]), num_rows
        assert torch.equal(linear(rows[3 : count + 3])[:num_rows], expected[3 : num_rows + 3]), num_rows


def test_bits_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchspec.model.strips.linear._WORTH_THREADS", 0)
    linear, rows = pack_linear(random(333, 64).bfloat16(), packing="strips"), random(50, 64, seed=6)
    results = []
    for num_threads in (1, 2, 3):
        torch.set_num_threads(num_threads)
        results.append(linear(rows))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_weights_in_half_packing_are_kept_to_the_last_bit() -> None:
    packed("half")
    weight = torch.tensor([[2.0**-e * (1 + 2.0**-7)] for e in range(30)]).bfloat16()
    assert torch.equal(pack_linear(weight, packing="half")(torch.ones(6, 1))[0], weight.float()[:, 0])


def test_a_room_is_used_again() -> None:
    linear, room, rows = pack_linear(random(32, 16), packing="strips"), Room(), random(9, 16, seed=7)
    first = linear(rows, room=room)
    assert linear(rows[:4], room=room).data_ptr() == first.data_ptr()
    assert linear(rows).data_ptr() != first.data_ptr()


@pytest.mark.parametrize("width", [64, 63, 512, 1024])
def test_pairs_are_sums_of_what_is_rounded(width: int) -> None:
    """Against float64 with the same rounded factors; rows 1,024 bytes apart have a space behind them."""
    linear, rows = pack_linear(random(50, width).bfloat16(), packing=packed("pairs")), random(33, width, seed=8)
    expected = rows.bfloat16().double() @ random(50, width).bfloat16().double().T
    assert float((linear(rows) - expected).abs().max()) < 1e-6 * width
    assert torch.equal(linear(rows), linear(rows.bfloat16().float()))


def test_what_is_multiplied_in_pairs_is_rounded_once() -> None:
    linear = StripLinear(random(48, 21), in_pairs=True)
    rows = random(3, 21, seed=9).numpy()
    assert (linear.seen(rows) == torch.from_numpy(rows).bfloat16().float().numpy()).all()
    assert StripLinear(random(48, 21)).seen(rows) is rows


@pytest.mark.parametrize("has_tiles", [True, False])
@pytest.mark.parametrize(
    ("dtype", "stored", "can", "expected"),
    [
        ("float32", {torch.bfloat16}, "half pairs bfloat16", "strips strips"),
        ("float32", {torch.bfloat16, torch.float32}, "half", "strips strips"),
        ("float32", {torch.float16}, "half", "half half"),
        ("float32", {torch.float16, torch.float32}, "half", "strips strips"),
        ("float32", {torch.float16}, "", "strips strips"),
        ("bfloat16", {torch.bfloat16}, "pairs bfloat16", "bfloat16 pairs"),
        ("bfloat16", {torch.bfloat16}, "bfloat16", "bfloat16 bfloat16"),
        ("bfloat16", {torch.float32}, "", "None None"),
    ],
)
def test_the_choice(
    monkeypatch: pytest.MonkeyPatch, has_tiles: bool, dtype: str, stored: set[torch.dtype], can: str, expected: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": has_tiles})
    monkeypatch.setattr("batchspec.model.linear.can_pack", lambda packing: packing in can.split())
    found = choose_packing(stored, dtype=getattr(torch, dtype))
    assert str(found) == expected.split()[0 if has_tiles else 1]


@pytest.mark.parametrize(("num_threads", "num_rows"), [(1, 5), (2, 5), (3, 2), (2, 0), (4, 40)])
def test_slices_cover_all_rows_once(num_threads: int, num_rows: int) -> None:
    seen: list[int] = []
    over_rows(num_threads, num_rows, lambda part: seen.extend(range(num_rows)[part]))
    assert sorted(seen) == list(range(num_rows))


def test_an_error_in_a_thread_is_raised() -> None:
    def fail(part: slice) -> None:
        if part.start:
            raise ValueError("in a helper")

    with pytest.raises(ValueError, match="in a helper"):
        over_rows(2, 10, fail)
