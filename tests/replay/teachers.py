"""A teacher over a fake draft model, and the target that goes with it."""

import torch

from batchspec.blocks import BlockPool
from batchspec.teacher import Teacher
from batchspec.testing import ByteTokenizer
from tests.core.paged import PagedModel
from tests.core.workloads import prone_table

from .live import CONTEXT

__all__ = ["DRAFT", "TARGET", "teacher_over"]

TARGET = prone_table(3, end=-1.0, is_poisoned=False)
DRAFT = TARGET + 0.7 * torch.randn(TARGET.shape, generator=torch.Generator().manual_seed(1))


def teacher_over(table: torch.Tensor = DRAFT, *, context_length: int = CONTEXT) -> Teacher:
    return Teacher(
        runner=PagedModel(table, block_size=4),
        pool=BlockPool(num_blocks=-(-context_length // 4), block_size=4),
        num_vocabulary=ByteTokenizer.vocab_size,
        context_length=context_length,
        eos_ids=frozenset({ByteTokenizer.eos_id}),
        encode_bad_word=ByteTokenizer().encode_bad_word,
    )
