"""What ``--dtype auto`` comes to on a CPU: by measurement, where the processor multiplies 16-bit floats at all."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from batchspec.model.linear import PackedLinear, choose_packing, pack_linear
from batchspec.model.locate import ModelSource

__all__ = ["DtypeChoice", "choose_dtype"]

_SMALLEST = 100_000_000  # bytes of weights, below which a step is over too soon for it to matter
_WORTH_IT = {"pairs": 1.1, "bfloat16": 1.3}  # times as fast as float32, without and with texts that depend on the batch
_ROWS, _OUT, _IN, _ROUNDS = 64, 4096, 1024, 7


@dataclass(frozen=True, kw_only=True)
class DtypeChoice:
    """A dtype, and why.

    Attributes:
        dtype: float32 or bfloat16.
        reason: a sentence for whoever waits for the run; empty where there was nothing to choose.
    """

    dtype: torch.dtype
    reason: str = ""


def choose_dtype(source: ModelSource) -> DtypeChoice:
    """Return float32, or bfloat16 where the weights are stored in it and it is measured to be clearly faster."""
    short_packing = choose_packing({torch.bfloat16}, dtype=torch.bfloat16)
    full_packing = choose_packing({torch.bfloat16}, dtype=torch.float32)
    if not (_stored_in_bfloat16(source) and _multiplies_bfloat16() and short_packing and full_packing):
        return DtypeChoice(dtype=torch.float32)
    weight = torch.randn(_OUT, _IN)
    rows = torch.randn(_ROWS, _IN)
    short = pack_linear(weight, packing=short_packing)
    full = pack_linear(weight, packing=full_packing)
    times: list[tuple[float, float]] = [(_seconds(full, rows), _seconds(short, rows)) for _ in range(_ROUNDS)]
    ratio = median(one / other for one, other in times[1:])
    return decide(ratio, packing=short_packing)


def decide(ratio: float, *, packing: str) -> DtypeChoice:
    """Return what a processor that multiplies bfloat16 so many times as fast as float32 should use."""
    if ratio < _WORTH_IT[packing]:
        return DtypeChoice(
            dtype=torch.float32, reason=f"dtype float32: bfloat16 is measured {ratio:.1f} times as fast here"
        )
    gain = "texts that do not depend on the batch" if packing == "bfloat16" else "products that round less"
    return DtypeChoice(
        dtype=torch.bfloat16,
        reason=f"dtype bfloat16: it is measured {ratio:.1f} times as fast as float32 here; "
        f"use --dtype float32 for {gain}",
    )


def _seconds(linear: PackedLinear, rows: torch.Tensor) -> float:
    start = time.perf_counter()
    linear(rows)
    return time.perf_counter() - start


def _stored_in_bfloat16(source: ModelSource) -> bool:
    """Return whether a directory's weights are large and, by its configuration, in bfloat16."""
    if sum(path.stat().st_size for path in source.files if path.suffix == ".safetensors") < _SMALLEST:
        return False
    try:
        config = json.loads((Path(source.path) / "config.json").read_bytes())
    except (OSError, ValueError):
        return False
    return "bfloat16" in (config.get("dtype"), config.get("torch_dtype"))


def _multiplies_bfloat16() -> bool:
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))
