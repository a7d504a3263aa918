"""What ``--dtype auto`` comes to on a CPU."""

import json
from pathlib import Path

import pytest
import torch

from batchspec.model import precision
from batchspec.model.locate import EMBEDDED_TARGET, ModelSource, locate
from batchspec.model.precision import choose_dtype, decide

_PACKINGS = {torch.bfloat16: "pairs", torch.float32: "strips"}


def large(directory: Path, *, dtype: str) -> ModelSource:
    """Return a directory that looks like a large model; its weights are a hole in the file system."""
    (directory / "config.json").write_text(json.dumps({"dtype": dtype}))
    with (directory / "model.safetensors").open("wb") as file:
        file.truncate(1 << 30)
    return locate(directory)


@pytest.mark.parametrize(
    ("packing", "gain"),
    [("bfloat16", "texts that do not depend on the batch"), ("pairs", "products that round less")],
)
def test_a_clear_gain_is_taken_and_told(packing: str, gain: str) -> None:
    choice = decide(3.14, packing=packing)
    assert choice.dtype is torch.bfloat16
    assert choice.reason == (
        f"dtype bfloat16: it is measured 3.1 times as fast as float32 here; use --dtype float32 for {gain}"
    )


@pytest.mark.parametrize(("ratio", "packing"), [(1.2, "bfloat16"), (1.0, "pairs")])
def test_a_small_gain_is_not_worth_the_last_bits(ratio: float, packing: str) -> None:
    choice = decide(ratio, packing=packing)
    assert choice.dtype is torch.float32
    assert choice.reason == f"dtype float32: bfloat16 is measured {ratio} times as fast here"


def test_less_is_worth_it_where_texts_do_not_depend_on_the_batch() -> None:
    assert decide(1.2, packing="pairs").dtype is torch.bfloat16


def test_nothing_is_measured_where_nothing_can_come_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: object) -> float:
        raise AssertionError("something was timed")

    monkeypatch.setattr(precision, "_seconds", measured)
    monkeypatch.setattr(precision, "_multiplies_bfloat16", lambda: True)
    monkeypatch.setattr(precision, "choose_packing", lambda stored, dtype: "any")
    assert choose_dtype(locate(EMBEDDED_TARGET)).dtype is torch.float32
    assert choose_dtype(large(tmp_path, dtype="float32")).dtype is torch.float32
    monkeypatch.setattr(precision, "_multiplies_bfloat16", lambda: False)
    assert choose_dtype(large(tmp_path, dtype="bfloat16")).dtype is torch.float32


@pytest.mark.parametrize(("short", "expected"), [(1.0, torch.bfloat16), (5.0, torch.float32)])
def test_it_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: float, expected: torch.dtype) -> None:
    monkeypatch.setattr(precision, "_multiplies_bfloat16", lambda: True)
    monkeypatch.setattr(precision, "choose_packing", lambda stored, dtype: _PACKINGS[dtype])
    monkeypatch.setattr(precision, "pack_linear", lambda weight, packing: packing)
    monkeypatch.setattr(precision, "_seconds", lambda linear, rows: short if linear == "pairs" else 4.0)
    assert choose_dtype(large(tmp_path, dtype="bfloat16")).dtype is expected
