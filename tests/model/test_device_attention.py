"""Attention on a device against the definition: by gathered keys, and by torch's kernel, for which a stand-in acts."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.model.device import padded, probe, varlen
from batchspec.model.device import shape as shapes
from batchspec.model.device.probe import find_form, form_for
from batchspec.model.device.shape import StepShape
from batchspec.model.device.varlen_form import VarlenForm

from .generating import CPU
from .on_device import StandIn, compute_on_device
from .paging import LAYOUTS, Layout, compute, plain

FORM = VarlenForm(page_size=1, has_key_starts=True)
MIXED = [(70, 41), (33, 4), (9, 9), (40, 1), (12, 1)]  # prefill, a verified draft, a whole prompt, two decodes


@given(LAYOUTS)
@settings(max_examples=150, deadline=None)
def test_gathered_keys_follow_the_definition(layout: Layout) -> None:
    tensors = layout.tensors()
    found = compute_on_device(layout, tensors)
    assert torch.allclose(
        found[: tensors["rows"].num_rows].double(), plain(layout, tensors)[: tensors["rows"].num_rows], atol=2e-5
    )
    assert not found[tensors["rows"].num_rows :].any()


@pytest.mark.parametrize("window", [0, 5])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
@pytest.mark.parametrize("has_sinks", [False, True])
def test_prefill_drafts_and_decodes_side_by_side(window: int, softcap: float, has_sinks: bool) -> None:
    layout = Layout(lengths=MIXED, group=3, window=window, softcap=softcap, has_sinks=has_sinks, num_padding=8)
    tensors = layout.tensors()
    found = compute_on_device(layout, tensors)
    assert torch.allclose(found, compute(layout, tensors), atol=2e-5)
    assert not found[-8:].any()


@pytest.mark.parametrize("most_tile_rows", [1, 3, 64])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_neither_tiles_nor_parts_change_a_result(
    monkeypatch: pytest.MonkeyPatch, most_tile_rows: int, softcap: float
) -> None:
    monkeypatch.setattr(shapes, "MOST_TILE_ROWS", most_tile_rows)
    monkeypatch.setattr(padded, "_MOST_NUMBERS", 1)
    layout = Layout(lengths=MIXED, window=7, softcap=softcap)
    tensors = layout.tensors()
    assert torch.allclose(compute_on_device(layout, tensors), compute(layout, tensors), atol=2e-5)


@pytest.mark.parametrize(
    "shape",
    [
        StepShape(num_sequences=5, num_rows=16, most_rows=4, width=8),
        StepShape(num_sequences=16, num_rows=64, most_rows=9, width=20),
    ],
)
@pytest.mark.parametrize("form", [None, FORM])
def test_what_fills_a_bucket_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, shape: StepShape, form: VarlenForm | None
) -> None:
    monkeypatch.setattr(varlen, "varlen_kernel", lambda: StandIn())
    layout = Layout(lengths=[(30, 4), (5, 1), (17, 3), (8, 4), (2, 1)])
    tensors = layout.tensors()
    dtype = torch.float32 if form is None else torch.bfloat16
    found = compute_on_device(layout, tensors, shape=shape, form=form, dtype=dtype).float()
    expected = compute(layout, tensors)
    assert torch.allclose(found[: len(expected)], expected, atol=2e-5 if form is None else 3e-2)
    assert not found[len(expected) :].any()


@given(LAYOUTS.filter(lambda layout: layout.dim % 8 == 0), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_kernel_is_called_as_it_wants_to_be(layout: Layout, has_key_starts: bool) -> None:
    layout.value_dim = layout.dim
    layout.softcap, layout.has_sinks = 0.0, False
    tensors = layout.tensors()
    kernel = StandIn(has_key_starts=has_key_starts)
    form = VarlenForm(page_size=1, has_key_starts=has_key_starts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(varlen, "varlen_kernel", lambda: kernel)
        found = compute_on_device(layout, tensors, dtype=torch.bfloat16, form=form).float()
    num_rows = tensors["rows"].num_rows
    assert kernel.num_calls == 1
    assert torch.allclose(found[:num_rows], plain(layout, tensors)[:num_rows].float(), atol=5e-2)
    assert not found[num_rows:].any()


@pytest.mark.parametrize("window", [0, 3])
def test_decodes_alone_have_a_padding_sequence_for_every_padding_row(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    kernel = StandIn()
    monkeypatch.setattr(varlen, "varlen_kernel", lambda: kernel)
    layout = Layout(lengths=[(30, 1), (5, 1), (17, 1)], window=window, num_padding=13)
    tensors = layout.tensors()
    found = compute_on_device(layout, tensors, dtype=torch.bfloat16, form=FORM).float()
    assert kernel.num_calls == 1
    assert torch.allclose(found, compute(layout, tensors), atol=3e-2)


@pytest.mark.parametrize(
    "changes",
    [
        {"softcap": 2.0},
        {"has_sinks": True},
        {"dim": 12, "value_dim": 12},
        {"value_dim": 16},
        {"dim": 264, "value_dim": 264},
    ],
)
def test_what_the_kernel_cannot_do_is_done_without_it(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, float]
) -> None:
    kernel = StandIn()
    monkeypatch.setattr(varlen, "varlen_kernel", lambda: kernel)
    layout = Layout(lengths=MIXED, **changes)  # type: ignore[arg-type]
    tensors = layout.tensors()
    found = compute_on_device(layout, tensors, dtype=torch.bfloat16, form=FORM).float()
    assert not kernel.num_calls
    assert torch.allclose(found, compute(layout, tensors), atol=5e-2)


def test_float32_is_not_given_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = StandIn()
    monkeypatch.setattr(varlen, "varlen_kernel", lambda: kernel)
    layout = Layout(lengths=MIXED)
    compute_on_device(layout, layout.tensors(), form=FORM)
    assert not kernel.num_calls


@pytest.mark.parametrize(
    ("kernel", "form"),
    [
        (StandIn(page_multiple=256), VarlenForm(page_size=256, has_key_starts=True)),
        (StandIn(has_key_starts=False), VarlenForm(page_size=16, has_key_starts=False)),
        (StandIn(page_multiple=256, has_key_starts=False), VarlenForm(page_size=256, has_key_starts=False)),
        (StandIn(error=1.0), None),
        (StandIn(error=float("nan")), None),
        (StandIn(page_multiple=100), None),
    ],
)
def test_the_form_that_works_is_found(
    monkeypatch: pytest.MonkeyPatch, kernel: StandIn, form: VarlenForm | None
) -> None:
    monkeypatch.setattr(varlen, "varlen_kernel", lambda: kernel)
    monkeypatch.setattr(probe, "varlen_kernel", lambda: kernel)
    assert find_form(CPU, torch.bfloat16) == form


def test_a_kernel_that_knows_no_pages_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_pages(query: torch.Tensor, *, scale: float, window_size: tuple[int, int]) -> None:
        raise AssertionError("called")

    monkeypatch.setattr(probe, "varlen_kernel", lambda: without_pages)
    assert find_form(CPU, torch.bfloat16) is None


def test_torch_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError

    monkeypatch.setattr(probe, "varlen_kernel", missing)
    assert find_form(CPU, torch.bfloat16) is None


def test_the_installed_torch_has_no_kernel_for_the_cpu() -> None:
    assert find_form(CPU, torch.bfloat16) is None
    assert form_for(CPU, torch.bfloat16) is None
