"""The two ways of attention on the device beside each other: how far apart they are, and what they take."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from batchspec.bench.clock import repeated, seconds_of
from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.device.freight import join, split
from batchspec.model.device.layout import lay_out
from batchspec.model.device.opening import page_size
from batchspec.model.device.padded import attend_padded
from batchspec.model.device.probe import form_for
from batchspec.model.device.rows import DeviceRows
from batchspec.model.device.shape import exact_shape
from batchspec.model.device.span import Span
from batchspec.model.device.varlen import attend_varlen

from .finding import Finding
from .stage import Stage

__all__ = ["check_kernels"]

_NUM_HEADS, _LAYOUT = 32, KVLayout(num_kv_heads=8, key_dim=64, value_dim=64)
_TOLERANCE = 0.03
_SCALE = 0.125


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Attention of one layer."""

    query: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    rows: DeviceRows

    def gathered(self, window: int) -> torch.Tensor:
        options: dict[str, Any] = {"window": window, "scale": _SCALE, "softcap": 0.0, "sinks": None}
        return attend_padded(self.query, self.keys, self.values, rows=self.rows, **options)

    def in_place(self, window: int) -> torch.Tensor:
        return attend_varlen(self.query, self.keys, self.values, rows=self.rows, window=window, scale=_SCALE)


@torch.inference_mode()
def check_kernels(stage: Stage) -> Finding:
    """Torch's kernel agrees with gathered keys in both 16-bit types, for decodes, drafts and prefill, with windows."""
    count, length = (4, 40) if stage.is_rehearsal else (64, 1024)
    lengths = {
        "decode": [(length - 7 * i % length, 1) for i in range(count)],
        "verify": [(length - 5 * i % (length - 8), 4) for i in range(count)],
        "prefill": [(length, length), (length, length // 2), (9, 9)],
        "mixed": [(length, length // 2), *((length - i, 1) for i in range(count // 2))],
    }
    lines, values, is_right = [], {}, True
    for dtype in (torch.bfloat16, torch.float16):
        form = form_for(stage.device, dtype)
        lines.append(f"{dtype}: {form or 'torch has no kernel here that reads pages, keys are gathered'}")
        for name, sequences in lengths.items():
            problem = _problem(sequences, dtype=dtype, device=stage.device)
            found: dict[str, float] = {"gathered_us": _microseconds(problem.gathered, stage)}
            if form is not None:
                found["in_place_us"] = _microseconds(problem.in_place, stage)
                found |= {f"difference, window {window}": _difference(problem, window) for window in (0, 100)}
                is_right &= all(found[f"difference, window {window}"] <= _TOLERANCE for window in (0, 100))
            values[f"{name}, {dtype}"] = found
            lines.append(f"{name}: " + ", ".join(f"{key} {value:.3g}" for key, value in found.items()))
    return Finding(is_right=is_right, lines=tuple(lines), values=values)


def _problem(lengths: list[tuple[int, int]], *, dtype: torch.dtype, device: torch.device) -> _Problem:
    """Return random queries and pages for (tokens so far, rows of this step) of each sequence."""
    size = page_size(device, dtype)
    counts = [-(-total // size) for total, _ in lengths]
    order = np.random.default_rng(0).permutation(sum(counts)).tolist()
    spans = [
        Span(
            token_ids=np.zeros(new, dtype=np.int64),
            start=total - new,
            blocks=[order.pop() for _ in range(count)],
        )
        for (total, new), count in zip(lengths, counts, strict=True)
    ]
    cache = KVCache(num_blocks=sum(counts), block_size=size, dtype=dtype, device=device, in_strips=False)
    keys, values = cache.layer(0, _LAYOUT)
    generator = torch.Generator(device).manual_seed(0)
    for pages in (keys, values):
        pages[: cache.num_blocks].normal_(generator=generator)
    shape = exact_shape(spans, row_counts=lambda num_rows: -(-num_rows // 16) * 16)
    wanted = np.zeros(1, dtype=np.int64)
    arrays = lay_out(spans, shape, wanted=wanted, block_size=size, trash_slot=cache.trash_slot)
    tensors = split(join(arrays, device=device).to(device), like=arrays)
    rows = DeviceRows.of(tensors, shape=shape, cache=cache, varlen=form_for(device, dtype))
    query = torch.randn(shape.num_rows, _NUM_HEADS, _LAYOUT.key_dim, dtype=dtype, device=device, generator=generator)
    return _Problem(query=query, keys=keys, values=values, rows=rows)


def _difference(problem: _Problem, window: int) -> float:
    """Return how far the two are apart at the most, padding rows left out."""
    apart = (problem.in_place(window) - problem.gathered(window)).float().abs()
    return float(apart[~problem.rows.is_padding].max())


def _microseconds(attend: Any, stage: Stage) -> float:
    attend(0)
    return 1e6 * repeated(lambda: seconds_of(lambda: attend(0), device=stage.device))
