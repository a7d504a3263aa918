"""Every parameter in one batch: neighbours, preemption and small steps change nothing, and all counts agree."""

from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.request import Request
from tests.core.runs import reconciliation_of, serve

from .adversaries import ADVERSARIES, Outputs, adversary
from .bodies import essence
from .cases import CASES, endpoint_of
from .serving import engine_of, parsed
from .test_speculation_changes_nothing import body_for, reference

SETUPS = {
    "wide": {"max_num_seqs": 16, "max_num_batched_tokens": 512},
    "few pages": {"max_num_seqs": 8, "max_num_batched_tokens": 48, "num_blocks": 66},
    "small steps": {"max_num_seqs": 5, "max_num_batched_tokens": 7, "block_size": 3, "num_blocks": 90},
}


def requests(temperature: float) -> list[Request]:
    return [
        parsed(body_for(name, temperature), endpoint=endpoint_of(case), index=index)
        for index, (name, case) in enumerate(CASES.items())
    ]


def merged_outputs(temperature: float) -> Outputs:
    """What every sequence comes to when its request is served alone, keyed as in the batch."""
    outputs: dict[tuple[int, int], list[int]] = {}
    for index, name in enumerate(CASES):
        alone = reference(name, temperature)[1]
        outputs |= {(index, sample): ids for (_, sample), ids in alone.items()}
    return outputs


def without_id(body: Any) -> Any:
    """A body's essence; the id tells the place in the batch."""
    return {key: value for key, value in essence(body).items() if key != "id"}


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("drafts", ["none", *ADVERSARIES])
@pytest.mark.parametrize("setup", SETUPS)
def test_neighbours_change_nothing(setup: str, drafts: str, temperature: float) -> None:
    settings: dict[str, Any] = SETUPS[setup]
    level = Level.NONE if drafts == "none" else Level.DETAILED
    engine = engine_of(adversary(drafts, merged_outputs(temperature)), level=level, **settings)
    records = serve(engine, requests(temperature))
    for name, record in zip(CASES, records, strict=True):
        assert record["error"] is None, (name, record["error"])
        assert without_id(record["response"]["body"]) == without_id(reference(name, temperature)[0]), name
    assert engine.scheduler.num_preemptions > 0 or setup != "few pages"
    if level is not Level.NONE:
        assert reconciliation_of(engine, records).is_exact
        assert {"n > 1", "several prompts", "stream without usage"} <= set(engine.desk.unreported)
