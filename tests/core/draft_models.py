"""Draft models over fakes that check themselves, and targets to go with them."""

from collections.abc import Sequence as Many
from typing import Any

import torch

from batchspec.acceptance import Level
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.engine import EngineCore
from batchspec.model.drafting.model import PagedDraftModel
from batchspec.request import Request
from batchspec.sequence import Sequence
from batchspec.step import Draft
from batchspec.testing import make_draft_model

from .paged import PagedModel
from .runs import ask, checked_engine
from .workloads import CONTEXT, LETTERS, prone_table

__all__ = ["TABLE", "Checked", "draft_model_over", "ends_clean", "engine_with", "other_model", "requests_of"]

TABLE = prone_table(4, end=-3.0, is_poisoned=False)


class Checked:
    """A draft model that asserts, whenever it is asked, that no page is lost or has two owners."""

    def __init__(self, inner: PagedDraftModel):
        self.inner = inner
        self.num_recomputed = 0

    def propose(self, decoding: Many[Sequence], *, num_tokens: int) -> list[Draft]:
        pages = self.inner.pages
        before = {shadow.sequence for shadow in pages.shadows if shadow.own.blocks}
        drafts = self.inner.propose(decoding, num_tokens=num_tokens)
        self.num_recomputed += sum(not shadow.own.blocks for shadow in pages.shadows if shadow.sequence in before)
        self.check()
        for draft in drafts:
            assert draft.token_probs is not None
            assert 1 <= len(draft.token_ids) == len(draft.token_probs) <= num_tokens
            assert all(0 <= prob <= 1 for prob in draft.token_probs)
            assert max(draft.token_ids) < self.inner.num_vocabulary
        return drafts

    def end(self, sequence: Sequence) -> None:
        self.inner.end(sequence)
        self.check()

    def check(self) -> None:
        pages = self.inner.pages
        pages.pool.check([shadow.own.blocks for shadow in pages.shadows])
        for shadow in pages.shadows:
            assert shadow.own.num_computed_tokens <= len(shadow.own.blocks) * pages.pool.block_size


def requests_of(number: int, **sampling: Any) -> list[Request]:
    """Prompts of different lengths, some long."""
    sampling = {"max_tokens": 20, "temperature": 0.8} | sampling
    return [
        ask([LETTERS[(i + j) % 6] for j in range(2 + 7 * i % 31)], index=i, seed=i, **sampling) for i in range(number)
    ]


def engine_with(draft_model: Checked, table: torch.Tensor = TABLE, *, k: int = 3, **settings: Any) -> EngineCore:
    """An engine over a paged target that drafts with a model."""
    return checked_engine(
        model=PagedModel(table, block_size=4),
        drafter=DraftModelDrafter(num_spec_tokens=k, draft_model=draft_model),
        block_size=4,
        max_model_len=CONTEXT,
        level=Level.DETAILED,
        **settings,
    )


def draft_model_over(table: torch.Tensor = TABLE, **settings: Any) -> Checked:
    model = PagedModel(table, block_size=settings.setdefault("block_size", 4))
    return Checked(make_draft_model(model=model, **{"context_length": CONTEXT} | settings))


def other_model(**settings: Any) -> Checked:
    """A draft model that is right now and then."""
    noise = torch.randn(TABLE.shape, generator=torch.Generator().manual_seed(1))
    return draft_model_over(TABLE + 0.7 * noise, **settings)


def ends_clean(draft_model: Checked) -> bool:
    pages = draft_model.inner.pages
    return not pages.shadows and pages.pool.num_free == pages.pool.num_blocks
