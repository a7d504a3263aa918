"""For every parameter: the same request without speculation and with drafters that try to do harm gives the same."""

from functools import cache
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.drafting import NoDrafter
from tests.core.runs import reconciliation_of

from .adversaries import ADVERSARIES, Outputs, adversary
from .bodies import check_shape, essence
from .cases import CASES, PROMPT, endpoint_of
from .serving import engine_of, parsed, serve_one

TEMPERATURES = (0.0, 0.9)


def body_for(name: str, temperature: float) -> dict[str, Any]:
    case = CASES[name]
    asked: dict[str, Any] = {"max_tokens": 40, "temperature": temperature, "seed": 5}
    if "max_completion_tokens" in case:
        del asked["max_tokens"]
    if "messages" not in case:
        asked["prompt"] = PROMPT
    return asked | case


class Listening(NoDrafter):
    """Drafts nothing and remembers what every sequence came to."""

    def __init__(self) -> None:
        self.outputs: dict[tuple[int, int], list[int]] = {}

    def end(self, sequence: Any) -> None:
        self.outputs[sequence.request_index, sequence.sample_index] = sequence.output_ids


@cache
def reference(name: str, temperature: float) -> tuple[Any, Outputs]:
    drafter = Listening()
    request = parsed(body_for(name, temperature), endpoint=endpoint_of(CASES[name]))
    record = serve_one(engine_of(drafter), request)
    assert record["error"] is None, record["error"]
    return record["response"]["body"], drafter.outputs


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("drafts", ADVERSARIES)
def test_speculation_changes_nothing_but_the_speed(name: str, drafts: str, temperature: float) -> None:
    expected, outputs = reference(name, temperature)
    engine = engine_of(adversary(drafts, outputs), level=Level.DETAILED)
    record = serve_one(engine, parsed(body_for(name, temperature), endpoint=endpoint_of(CASES[name])))
    assert record["error"] is None, record["error"]
    body = record["response"]["body"]
    assert essence(body) == essence(expected)
    check_shape(body)
    assert reconciliation_of(engine, [record]).is_exact


@pytest.mark.parametrize("name", CASES)
def test_the_drafts_of_the_truth_are_accepted(name: str) -> None:
    """Else the test above would compare one run without speculation with another."""
    _, outputs = reference(name, 0.0)
    assert max(len(ids) for ids in outputs.values()) > 2 or name.startswith("max_tokens")
    if name.startswith("max_tokens"):
        return
    engine = engine_of(adversary("right", outputs), level=Level.DETAILED)
    serve_one(engine, parsed(body_for(name, 0.0), endpoint=endpoint_of(CASES[name])))
    totals = engine.counters.totals()
    assert totals["num_accepted_draft_tokens"] == totals["num_draft_tokens"] != 0
