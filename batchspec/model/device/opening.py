"""What an engine on a device begins with: how large its pages are, what is recorded, and what its user is told."""

from collections.abc import Callable

import torch

from batchspec.blocks import num_blocks_for
from batchspec.model.device.buckets import Buckets
from batchspec.model.device.capture import CudaCapture
from batchspec.model.device.graphs import not_recorded
from batchspec.model.device.probe import form_for
from batchspec.model.device.steps import DeviceSteps
from batchspec.model.device.varlen import KERNEL_DTYPES

__all__ = ["page_size", "record_steps"]

_PAGE_SIZE = 16  # tokens, where nothing asks for more


def page_size(device: torch.device, dtype: torch.dtype) -> int:
    """Return the tokens of a page: the smallest that the device's kernel can read in place, if it has one.

    Args:
        device: where the pages are.
        dtype: of the pages.
    """
    form = form_for(device, dtype)
    return _PAGE_SIZE if form is None else form.page_size


def record_steps(
    steps: DeviceSteps,
    *,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    max_model_len: int,
    num_spec_tokens: int,
    note: Callable[[str], None],
) -> None:
    """Record an engine's decode and verify steps on a CUDA device, the largest at once.

    Args:
        steps: of the engine.
        max_num_seqs: the most sequences in a step.
        max_num_batched_tokens: the most tokens in a step.
        max_model_len: the most tokens in a sequence.
        num_spec_tokens: the most tokens in a draft.
        note: told, in a sentence, what is slower than it could be, and why.
    """
    cache = steps.cache
    try:
        is_gathering = steps.gathers()
    except RuntimeError as error:
        note(not_recorded(error))
        return
    if is_gathering:
        note(f"attention gathers keys and values before it reads them, because {_reason(steps)}")
    buckets = Buckets(
        most_sequences=max_num_seqs,
        most_drafted=num_spec_tokens,
        most_tokens=max_num_batched_tokens,
        most_blocks=num_blocks_for(max_model_len, block_size=cache.block_size),
        has_full_tables=not is_gathering,
    )
    steps.record(buckets, capture=CudaCapture(cache.device), note=note)


def _reason(steps: DeviceSteps) -> str:
    """Return why torch's kernel that reads pages in place is not used."""
    if steps.cache.dtype not in KERNEL_DTYPES:
        return "the kernel that reads them in their pages takes 16-bit floats only"
    if steps.form is None:
        return "this version of torch has no kernel that reads them in their pages on this device"
    return "the model's attention is more than the kernel that reads them in their pages can do"
