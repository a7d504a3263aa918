"""The suffix drafter in the engine: what it may learn, and that nothing but the input decides it."""

from typing import Any

import numpy as np
import pytest

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.auto import AutoDrafter
from batchspec.drafting.estimates import AcceptanceEstimates
from batchspec.drafting.generations import Output
from batchspec.drafting.suffix import SuffixDrafter
from batchspec.request import Request
from batchspec.step import Draft
from batchspec.testing import ScriptedDrafter, TableModel

from .runs import ask, checked_engine, reconciliation_of, serve, spec_of, token_ids_of
from .sequences import decoding

MODEL = TableModel.random(seed=3, scale=6.0)


def drafter_of(*, size: int = 4, most_outputs: int = -1, k: int = 4) -> SuffixDrafter:
    return SuffixDrafter(
        num_spec_tokens=k, max_depth=6, factor=2.0, min_prob=0.1, most_outputs=most_outputs, generation_size=size
    )


def requests_of(number: int) -> list[Request]:
    """Requests whose lengths differ a lot and whose answers are alike, since the next token hangs on the last."""
    return [
        ask([5 + i % 7, i % 11, 30], index=i, max_tokens=3 + i * 7 % 23, temperature=0.5 * (i % 2), seed=i % 3)
        for i in range(number)
    ]


def traces(records: list[dict[str, Any]]) -> list[tuple[list[int], list[int]]]:
    return [(spec_of(record)["per_step_drafted"], spec_of(record)["per_step_accepted"]) for record in records]


def run(requests: list[Request], drafter: SuffixDrafter, **options: Any) -> list[dict[str, Any]]:
    engine = checked_engine(model=MODEL, drafter=drafter, level=Level.DETAILED, **options)
    records = serve(engine, requests)
    assert reconciliation_of(engine, records).is_exact
    assert not drafter._progress
    return records


def test_the_trace_is_the_same_for_every_batch_size_and_the_text_with_preemptions() -> None:
    requests = requests_of(40)
    expected = run(requests, drafter_of(), max_num_seqs=1)
    num_from_others = sum(len(drafted) for drafted, _ in traces(expected))
    assert num_from_others > sum(len(d) for d, _ in traces(run(requests, drafter_of(most_outputs=0), max_num_seqs=1)))
    for options in (
        {"max_num_seqs": 3},
        {"max_num_seqs": 4, "prefix_caching": True},
        {"max_num_seqs": 4, "max_num_batched_tokens": 7},
    ):
        records = run(requests, drafter_of(), **options)
        assert traces(records) == traces(expected)
        assert list(map(token_ids_of, records)) == list(map(token_ids_of, expected))
    records = run(requests, drafter_of(), max_num_seqs=16, num_blocks=14, max_model_len=56)
    assert list(map(token_ids_of, records)) == list(map(token_ids_of, expected))


@pytest.mark.parametrize("num_done", [1, 7, 8, 19, 33])
def test_the_trace_is_the_same_behind_an_interruption(num_done: int) -> None:
    requests = requests_of(40)
    expected = traces(run(requests, drafter_of(), max_num_seqs=4))
    kept: list[tuple[int, int, Output]] = []
    first = drafter_of()
    first.generations.on_output = lambda *output: kept.append(output)
    run(requests[:num_done], first, max_num_seqs=4)
    second = drafter_of()
    for output in kept:
        second.generations.remember(*output)
    assert traces(run(requests[num_done:], second, max_num_seqs=4)) == expected[num_done:]


def test_a_request_that_fails_keeps_nobody_waiting() -> None:
    requests = requests_of(24)
    engine = checked_engine(model=MODEL, drafter=drafter_of(size=2), max_num_seqs=2, max_model_len=12)
    records = serve(engine, requests)
    assert len(records) == 24
    assert any(record["error"] for record in records)


def test_a_draft_is_from_the_own_text_or_from_others() -> None:
    drafter = drafter_of(size=1)
    first = decoding([1, 2, 3, 4, 5])
    drafter.begin(first)
    first.finish_reason = "stop"
    drafter.end(first)
    later = decoding([9, 9, 4])
    later.request_index = 2
    drafter.begin(later)
    assert drafter.is_ready(later)
    (draft,) = drafter.propose([later])
    assert (draft.token_ids, draft.source, draft.token_probs, draft.match_length) == ([5], "suffix_global", [1.0], 1)
    own = decoding([7, 8, 7])
    own.request_index = 2
    drafter.begin(own)
    (draft,) = drafter.propose([own])
    assert (draft.token_ids, draft.source) == ([8, 7], "suffix_local")


def test_a_million_tokens_stay_in_bounded_memory() -> None:
    drafter = drafter_of(size=50, most_outputs=1000)
    drafter.shared.most_nodes = 200_000
    generator = np.random.default_rng(0)
    largest = 0
    for index in range(5000):
        drafter.generations.remember(index, 0, generator.integers(0, 50, size=206))
    for index in range(0, 5000, 50):
        sequence = decoding([1, 2, 3])
        sequence.request_index = index + 100
        assert drafter.generations.is_ready(sequence)
        trie = drafter.shared.trie_for(sequence)
        assert trie is not None
        largest = max(largest, trie.num_bytes)
        assert trie.num_nodes <= 200_000 + 6 * 206
    assert largest < 40_000_000


def test_the_best_of_several_drafts_is_taken_and_learnt_from() -> None:
    likely = ScriptedDrafter(num_spec_tokens=2, script=lambda _: [1, 2])
    unlikely = ScriptedDrafter(num_spec_tokens=3, script=lambda _: [3, 4, 5])
    auto = AutoDrafter([unlikely, likely], last=None, estimates=AcceptanceEstimates())
    sequence = decoding([1, 2, 3])
    assert auto.num_spec_tokens == 3
    assert auto.propose([sequence])[0].token_ids == [3, 4, 5]


def test_a_draft_model_is_asked_only_where_the_others_have_little() -> None:
    asked: list[int] = []

    def script(sequence: Any) -> list[int]:
        asked.append(sequence.request_index)
        return [8, 8, 8]

    rich, poor = decoding([1, 2, 3]), decoding([1, 2, 3])
    rich.request_index, poor.request_index = 1, 2
    free = ScriptedDrafter(num_spec_tokens=3, script=lambda one: [7, 7, 7] if one is rich else [])
    auto = AutoDrafter([free], last=ScriptedDrafter(num_spec_tokens=3, script=script), estimates=AcceptanceEstimates())
    assert [draft.token_ids[0] for draft in auto.propose([rich, poor])] == [7, 8]
    assert asked == [2]


def test_estimates_follow_what_became_of_drafts() -> None:
    estimates = AcceptanceEstimates()
    draft = Draft(sequence=decoding([1, 2]), token_ids=[1, 2, 3], source="ngram", match_length=3)
    first = estimates.survival(draft)
    assert first == pytest.approx([0.6, 0.36, 0.216])
    for _ in range(200):
        estimates.observe(draft, num_tried=3, num_accepted=1)
    after = estimates.survival(draft)
    assert after[0] > 0.95
    assert after[1] < 0.6
    certain = Draft(sequence=draft.sequence, token_ids=[1], source="suffix_local", token_probs=[1.0], match_length=2)
    assert estimates.survival(certain) == [1.0]


def test_the_ensemble_of_the_registry() -> None:
    config = SpeculativeConfig.from_mapping({"method": "auto", "num_speculative_tokens": 5})
    drafter = make_drafter(config)
    assert (drafter.num_spec_tokens, config.adaptive) == (5, True)
    assert drafter.generations is not None


def test_another_run_of_the_same_engine_begins_with_nothing_learnt() -> None:
    requests = requests_of(24)
    engine = checked_engine(model=MODEL, drafter=drafter_of(), level=Level.DETAILED)
    first = serve(engine, requests)
    assert any("suffix_global" in source for source in engine.sources.totals())
    assert traces(serve(engine, requests)) == traces(first)
