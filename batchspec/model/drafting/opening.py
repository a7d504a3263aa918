"""Putting a draft model together: its pages, its network over them, and what is recorded of its steps."""

from collections.abc import Callable

from batchspec.blocks import BlockPool, num_blocks_for
from batchspec.model.cache import KVCache
from batchspec.model.device.opening import record_steps
from batchspec.model.drafting.model import PagedDraftModel
from batchspec.model.drafting.pages import DraftPages
from batchspec.model.load import LoadedModel
from batchspec.model.runner import ModelRunner

__all__ = ["open_draft_model"]


def open_draft_model(
    draft: LoadedModel,
    *,
    num_blocks: int,
    block_size: int,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    max_model_len: int,
    num_spec_tokens: int,
    prefix_caching: bool,
    note: Callable[[str], None],
) -> PagedDraftModel:
    """Return a draft model with pages for as many tokens as the target has, and for a draft behind each sequence.

    Args:
        draft: the small model.
        num_blocks: of the target's pool, which hold a sequence of ``max_model_len`` tokens.
        block_size: tokens in a block.
        max_num_seqs: the most sequences that draft in a step.
        max_num_batched_tokens: the most tokens in one pass.
        max_model_len: the most tokens in a sequence of the target.
        num_spec_tokens: the most tokens in a draft.
        prefix_caching: compute beginnings that several sequences share once.
        note: told, in sentences, what the user should know about how it runs here.
    """
    num_drafted_blocks = num_blocks_for(num_spec_tokens, block_size=block_size)
    pool = BlockPool(num_blocks=num_blocks + max_num_seqs * num_drafted_blocks, block_size=block_size)
    cache = KVCache(
        num_blocks=pool.num_blocks,
        block_size=block_size,
        dtype=draft.kv_dtype,
        device=draft.device,
    )
    runner = ModelRunner(network=draft.network, cache=cache, device=draft.device)
    if runner.on_device is not None:
        record_steps(
            runner.on_device,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            max_model_len=min(max_model_len, draft.context_length),
            num_spec_tokens=0,
            note=lambda text: note(f"draft model: {text}"),
        )
    return PagedDraftModel(
        runner=runner,
        pages=DraftPages(pool, prefix_caching=prefix_caching),
        num_vocabulary=draft.tokenizer.num_vocabulary,
        context_length=draft.context_length,
        max_num_batched_tokens=max_num_batched_tokens,
    )
