"""Made-up passes have the size that was asked for and stay inside the pool."""

import pytest

from batchspec.bench.made_up import filling_plans, make_plan
from batchspec.testing import make_engine
from batchspec.verify import judge


@pytest.mark.parametrize(("rows", "width", "lengths"), [(1, 1, [1]), (6, 4, [4, 2]), (8, 4, [4, 4]), (3, 1, [1, 1, 1])])
def test_a_plan_has_its_rows(rows: int, width: int, lengths: list[int]) -> None:
    core = make_engine(num_blocks=5)
    plan = make_plan(core, [1, 2, 3], rows=rows, context=9, width=width)
    assert [len(chunk.token_ids) for chunk in plan.chunks] == lengths
    assert plan.num_tokens == plan.num_sampled_rows == rows
    for chunk in plan.chunks:
        blocks = chunk.sequence.blocks
        assert chunk.start == 8
        assert len(blocks) * 4 >= 9 + len(chunk.draft)
        assert all(0 <= block < 5 for block in blocks)
    verdicts = judge(plan, core.runner.forward(plan))
    assert len(verdicts.target_ids) == rows


def test_filling_touches_every_block_once() -> None:
    core = make_engine(num_blocks=11)
    plans = list(filling_plans(core, [1, 2], context=17))
    blocks = [block for plan in plans for chunk in plan.chunks for block in chunk.sequence.blocks]
    assert blocks == list(range(11))
    assert all(len(chunk.token_ids) == 4 * len(chunk.sequence.blocks) for plan in plans for chunk in plan.chunks)
