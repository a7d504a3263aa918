"""Packed weights multiply as they should, and give a row the same bits whatever its neighbours."""

import pytest
import torch

from batchspec.model.linear import Room, can_pack, choose_packing, pack_linear, row_counts
from batchspec.threads import over_rows

PACKINGS = ["strips", "half", "full", "bfloat16"]
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
    tolerance = 2e-2 if packing == "bfloat16" else 1e-6
    assert float((linear(rows) - expected).abs().max()) < tolerance * max(1.0, width**0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_strips_of_other_types(dtype: torch.dtype) -> None:
    weight, rows = random(20, 33, seed=3).to(dtype), random(5, 33, seed=4)
    found = pack_linear(weight, packing="strips")(rows)
    assert float((found - rows.double() @ weight.double().T).abs().max()) < 2e-5


@pytest.mark.parametrize("packing", ["strips", "half", "full"])
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
    monkeypatch.setattr("batchspec.model.linear._WORTH_THREADS", 0)
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


@pytest.mark.parametrize(
    ("wide", "stored", "expected"),
    [
        (False, {torch.bfloat16}, "strips"),
        (False, {torch.bfloat16, torch.float32}, "strips"),
        (False, {torch.float16}, "half"),
        (True, {torch.bfloat16}, "half"),
        (True, {torch.float32}, "full"),
    ],
)
def test_the_choice(monkeypatch: pytest.MonkeyPatch, wide: bool, stored: set[torch.dtype], expected: str) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_f": wide})
    monkeypatch.setattr("batchspec.model.linear.can_pack", lambda packing: True)
    assert choose_packing(stored) == expected


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
