"""The whole surface at once, served by the embedded model in one batch or line by line, with and without drafts."""

from typing import Any

import pytest

from batchspec import Engine
from batchspec.report import Aggregate

from .bodies import check_shape, essence
from .cases import CASES, PROMPT, endpoint_of

WORDS = "Once upon a time there was a fox. Once upon a time there"


def rows() -> list[dict[str, Any]]:
    """A batch line for every case and two temperatures, with a prompt that the model knows how to go on with."""
    lines = []
    for temperature in (0.0, 0.8):
        for name, case in CASES.items():
            body: dict[str, Any] = {"temperature": temperature, "max_tokens": 24} | case
            if "max_completion_tokens" in case:
                del body["max_tokens"]
            if "messages" not in case:
                body = {"prompt": WORDS if temperature else PROMPT} | body
            custom_id = f"{name} at {temperature}"
            lines.append({"custom_id": custom_id, "method": "POST", "url": str(endpoint_of(case)), "body": body})
    return lines


def served(**settings: Any) -> dict[str, Any]:
    engine = Engine(level="none" if settings["speculative_config"]["method"] == "none" else "detailed", **settings)
    aggregate = Aggregate()
    bodies = {}
    for record in engine.run(rows()):
        assert record["error"] is None, record
        aggregate.add(record)
        check_shape(record["response"]["body"])
        bodies[record["custom_id"]] = essence(record["response"]["body"])
    reconciliation = engine.reconcile(aggregate.sums())
    assert reconciliation is None or reconciliation.is_exact
    return bodies


@pytest.mark.slow
def test_nothing_depends_on_the_drafter_or_the_batch() -> None:
    expected = served(speculative_config={"method": "none"}, max_num_seqs=1)
    assert len(expected) == 2 * len(CASES)
    ngram = {"method": "ngram", "prompt_lookup_min": 1, "prompt_lookup_max": 3}
    for settings in (
        {"speculative_config": ngram | {"num_speculative_tokens": 3, "forced_tokens": True}, "max_num_seqs": 32},
        {"speculative_config": ngram | {"num_speculative_tokens": 8}, "max_num_batched_tokens": 40},
        {"speculative_config": {"method": "forced", "num_speculative_tokens": 5}, "kv_cache_memory": 20 * 2**20},
    ):
        found = served(**settings)
        for name, body in expected.items():
            assert found[name] == body, name
