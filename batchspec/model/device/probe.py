"""Which way of calling torch's variable-length kernel works here, found by trying.

Versions of torch and the kernels that stand behind it differ in the pages and arguments that they take: pages of 256
tokens with FlashAttention 2, of any size and without cumulative numbers of keys with FlashAttention 3, no pages at all
in torch 2.11. A small problem is computed in every form until one gives what ``attend_padded`` gives.
"""

import inspect
from collections.abc import Sequence as Many
from functools import cache

import numpy as np
import torch

from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.device.freight import join, split
from batchspec.model.device.layout import lay_out
from batchspec.model.device.padded import attend_padded
from batchspec.model.device.rows import DeviceRows
from batchspec.model.device.shape import exact_shape
from batchspec.model.device.span import Span
from batchspec.model.device.varlen import KERNEL_DTYPES, attend_varlen, varlen_kernel
from batchspec.model.device.varlen_form import VarlenForm

__all__ = ["find_form", "form_for"]

_FORMS = tuple(
    VarlenForm(page_size=page_size, has_key_starts=has_key_starts)
    for page_size in (16, 256)
    for has_key_starts in (False, True)
)
_ARGUMENTS = {"scale", "window_size", "enable_gqa", "seqused_k", "block_table", "num_splits"}
_TOLERANCE = 0.05  # of results whose size is one, in 16 bits
_LAYOUT = KVLayout(num_kv_heads=2, key_dim=64, value_dim=64)
_NUM_HEADS = 4
_NUM_BLOCKS = 8


@cache
def form_for(device: torch.device, dtype: torch.dtype) -> VarlenForm | None:
    """Return how the kernel is to be called for pages of that dtype; None where it cannot be used."""
    return find_form(device, dtype) if device.type == "cuda" and dtype in KERNEL_DTYPES else None


def find_form(device: torch.device, dtype: torch.dtype) -> VarlenForm | None:
    """Return the first form that gives right results on the device; None if there is none."""
    try:
        known = set(inspect.signature(varlen_kernel()).parameters)
    except ImportError:
        return None
    if not known >= _ARGUMENTS:
        return None
    return next((form for form in _FORMS if _works(form, device=device, dtype=dtype)), None)


def _works(form: VarlenForm, *, device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether the kernel agrees with plain operations: many rows and single ones, with a window and without."""
    size = form.page_size
    drafted = _spans([(size + 37, 3), (5, 5), (2 * size, 1)], size)
    single = _spans([(size + 37, 1), (5, 1), (2 * size, 1)], size)
    try:
        return all(
            _agrees(spans, form=form, window=window, device=device, dtype=dtype)
            for spans in (drafted, single)
            for window in (0, 9)
        )
    except (RuntimeError, TypeError, ValueError):
        return False


def _spans(lengths: Many[tuple[int, int]], page_size: int) -> list[Span]:
    """Return a span for each (tokens so far, rows of this step), over pages in no order."""
    free = [5, 2, 7, 0, 3, 6, 1, 4]
    return [
        Span(
            token_ids=np.zeros(num_rows, dtype=np.int64),
            start=length - num_rows,
            blocks=[free.pop() for _ in range(-(-length // page_size))],
        )
        for length, num_rows in lengths
    ]


def _agrees(spans: list[Span], *, form: VarlenForm, window: int, device: torch.device, dtype: torch.dtype) -> bool:
    cache = KVCache(num_blocks=_NUM_BLOCKS, block_size=form.page_size, dtype=dtype, device=device, in_strips=False)
    keys, values = cache.layer(0, _LAYOUT)
    generator = torch.Generator().manual_seed(0)
    for pages in (keys[:_NUM_BLOCKS], values[:_NUM_BLOCKS]):
        pages.copy_(torch.randn(pages.shape, generator=generator))
    shape = exact_shape(spans, row_counts=lambda num_rows: -(-num_rows // 4) * 4)
    wanted = np.zeros(1, dtype=np.int64)
    arrays = lay_out(spans, shape, wanted=wanted, block_size=form.page_size, trash_slot=cache.trash_slot)
    tensors = split(join(arrays, device=device).to(device), like=arrays)
    rows = DeviceRows.of(tensors, shape=shape, cache=cache, varlen=form)
    query = torch.randn(shape.num_rows, _NUM_HEADS, _LAYOUT.key_dim, generator=generator).to(device, dtype)
    found = attend_varlen(query, keys, values, rows=rows, window=window, scale=0.2)
    expected = attend_padded(query, keys, values, rows=rows, window=window, scale=0.2, softcap=0.0, sinks=None)
    num_rows = sum(len(span.token_ids) for span in spans)
    return bool(((found - expected)[:num_rows].float().abs() <= _TOLERANCE).all())
