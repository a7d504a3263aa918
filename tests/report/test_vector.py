"""The worked example of the accounting rules, to the last digit."""

import statistics
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.report import Aggregate

from .records import recorder_of, served

K = 4
ACCEPTED = ([2, 3, 1, 4, 2, 0, 3, 3], [1, 1, 0])


@pytest.fixture(params=[Level.SUMMARY, Level.DETAILED])
def acceptance(request: pytest.FixtureRequest) -> Any:
    aggregate = Aggregate()
    for accepted in ACCEPTED:
        steps = [(K, number) for number in accepted]
        aggregate.add(served(recorder_of(steps, num_spec_tokens=K, level=request.param)))
    return aggregate.document()["acceptance"]


def test_pooled(acceptance: dict[str, Any]) -> None:
    pooled = acceptance["pooled"]
    assert pooled["acceptance_histogram"] == [2, 3, 2, 3, 1]
    assert pooled["num_spec_steps"] == 11
    assert pooled["num_accepted_draft_tokens"] == 20
    assert pooled["num_draft_tokens"] == 44
    assert pooled["mean_acceptance_length"] == 1 + 20 / 11
    assert pooled["draft_acceptance_rate"] == 20 / 44


def test_mean_over_requests(acceptance: dict[str, Any]) -> None:
    mean = acceptance["mean_over_requests"]
    assert f"{mean['mean_acceptance_length']:.4f}" == "2.4583"
    assert f"{mean['draft_acceptance_rate']:.4f}" == "0.3646"
    assert mean["mean_acceptance_length"] == statistics.mean([1 + 18 / 8, 1 + 2 / 3])
    assert mean["draft_acceptance_rate"] == statistics.mean([18 / 32, 2 / 12])
    assert mean["num_requests"] == 2
    assert mean["num_requests_without_step"] == 0


def test_per_position(acceptance: dict[str, Any]) -> None:
    accepted = [9, 6, 4, 1]
    assert acceptance["per_position"] == [
        {
            "position": i,
            "num_drafted": 11,
            "num_accepted": accepted[i],
            "marginal_rate": accepted[i] / 11,
            "conditional_rate": accepted[i] / 11,
        }
        for i in range(K)
    ]


def test_emitted(acceptance: dict[str, Any]) -> None:
    assert acceptance["pooled"]["num_decode_steps"] == 11
    assert acceptance["pooled"]["tokens_per_decode_step"] == 31 / 11
    assert acceptance["mean_over_requests"]["tokens_per_decode_step"] == statistics.mean([26 / 8, 5 / 3])
