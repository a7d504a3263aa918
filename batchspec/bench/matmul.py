"""How fast this machine multiplies by a linear layer's weights: the ways there are, and the fastest for each shape."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from batchspec.bench.clock import repeated, seconds_of
from batchspec.bench.shapes import LinearShape

__all__ = ["CANDIDATES", "Candidate", "MatmulPass", "candidates_for"]

_MOST_BYTES = 512 * 2**20  # of one shape's weights: more than a cache holds, not more than needed
_NUM_TRIALS = 2
_FLOAT32 = torch.float32

Multiply = Callable[[torch.Tensor], object]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A way to compute ``x @ weight.T``.

    Attributes:
        dtypes: those of the models that it is a way for: one that rounds rows is none for float32. Packed float16
            rounds no rows, and no weights that were stored in 16 bits.
        devices: where it works.
        prepare: from a float32 weight (n, k) and a number of rows to what multiplies float32 rows (rows, k).
    """

    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    prepare: Callable[[torch.Tensor, int], Multiply]


def _plain(weight: torch.Tensor, _: int) -> Multiply:
    return lambda x: functional.linear(x, weight)


def _cast(dtype: torch.dtype) -> Callable[[torch.Tensor, int], Multiply]:
    def prepare(weight: torch.Tensor, _: int) -> Multiply:
        cast = weight.to(dtype)
        return lambda x: functional.linear(x.to(dtype), cast)

    return prepare


def _onednn(weight: torch.Tensor, rows: int) -> Multiply:
    ops: Any = torch.ops.mkldnn
    packed = ops._reorder_linear_weight(weight, rows)
    return lambda x: ops._linear_pointwise(x, packed, None, "none", [], "")


def _half_packed(weight: torch.Tensor, _: int) -> Multiply:
    ops: Any = torch.ops.quantized
    packed = ops.linear_prepack_fp16(weight, None)
    return lambda x: ops.linear_dynamic_fp16(x, packed)


_ALL = ("float32", "bfloat16", "float16")
CANDIDATES = {
    "torch float32": Candidate(dtypes=_ALL, devices=("cpu", "cuda"), prepare=_plain),
    "oneDNN float32": Candidate(dtypes=_ALL, devices=("cpu",), prepare=_onednn),
    "packed float16": Candidate(dtypes=_ALL, devices=("cpu",), prepare=_half_packed),
    "torch bfloat16": Candidate(dtypes=("bfloat16",), devices=("cpu", "cuda"), prepare=_cast(torch.bfloat16)),
    "torch float16": Candidate(dtypes=("float16",), devices=("cuda",), prepare=_cast(torch.float16)),
}


def candidates_for(*, dtype: str, device: torch.device) -> dict[str, Candidate]:
    """Return the ways that keep the numbers of a model with that dtype, and work on the device with this torch."""
    found = {}
    for name, candidate in CANDIDATES.items():
        if dtype in candidate.dtypes and device.type in candidate.devices:
            try:
                candidate.prepare(torch.zeros(16, 16, device=device), 1)(torch.zeros(1, 16, device=device))
            except (RuntimeError, AttributeError):
                continue
            found[name] = candidate
    return found


@dataclass(frozen=True, kw_only=True)
class _Group:
    """The layers of one shape, each of which stands for ``scale`` layers of the model."""

    x: torch.Tensor
    layers: list[Multiply]
    scale: float

    def run(self) -> None:
        for layer in self.layers:
            layer(self.x)


class MatmulPass:
    """All matrix products of a forward pass, each the fastest way, over weights that take as much room as the model's.

    Args:
        shapes: the model's linear layers.
        rows: of the pass.
        dtype: of the model.
        device: where.
    """

    def __init__(self, shapes: list[LinearShape], *, rows: int, dtype: str, device: torch.device):
        self.device = device
        self.ways: list[dict[str, Any]] = []
        self._candidates = candidates_for(dtype=dtype, device=device)
        self._groups = [self._settle(shape, rows=rows) for shape in shapes]

    @torch.inference_mode()
    def seconds(self) -> float:
        """Return the seconds that all of them take, one after another, measured once."""
        return repeated(self._one_pass)

    def _one_pass(self) -> float:
        return sum(seconds_of(group.run, device=self.device) * group.scale for group in self._groups)

    @torch.inference_mode()
    def _settle(self, shape: LinearShape, *, rows: int) -> _Group:
        """Return the shape's layers computed the fastest way, and note what every way takes for one layer."""
        num_copies = min(shape.count, max(1, _MOST_BYTES // (shape.n * shape.k * _FLOAT32.itemsize)))
        weights = [torch.randn(shape.n, shape.k, device=self.device) * shape.k**-0.5 for _ in range(num_copies)]
        x = torch.randn(rows, shape.k, device=self.device)
        times: dict[str, float] = {}
        best: _Group | None = None
        for name, candidate in self._candidates.items():
            layers = [candidate.prepare(weight, rows) for weight in weights]
            group = _Group(x=x, layers=layers, scale=shape.count / num_copies)
            group.run()
            times[name] = min(seconds_of(group.run, device=self.device) for _ in range(_NUM_TRIALS)) / num_copies
            if best is None or times[name] == min(times.values()):
                best = group
        assert best is not None, "torch multiplies everywhere"
        fastest = min(times, key=lambda name: times[name])
        self.ways.append({"n": shape.n, "k": shape.k, "count": shape.count, "fastest": fastest, "seconds": times})
        return best
