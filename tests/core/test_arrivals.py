"""Drafts that times decide: everyone sees what has ended, nobody waits, and texts are what they are without drafts."""

from typing import Any

import numpy as np
import pytest

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.arrivals import Arrivals
from batchspec.drafting.generations import Generations, Output
from batchspec.drafting.suffix import SuffixDrafter
from batchspec.sequence import Sequence
from batchspec.testing import TableModel

from .runs import ask, checked_engine, reconciliation_of, serve, spec_of, token_ids_of
from .sequences import decoding

MODEL = TableModel.random(seed=3, scale=6.0)


def drafter_of(*, most_outputs: int = -1) -> SuffixDrafter:
    return SuffixDrafter(
        num_spec_tokens=4, max_depth=6, factor=2.0, min_prob=0.1, most_outputs=most_outputs, generation_size=None
    )


def ended(drafter: SuffixDrafter, tokens: list[int], *, reason: str = "stop") -> None:
    sequence = decoding(tokens)
    drafter.begin(sequence)
    sequence.finish_reason = reason
    drafter.end(sequence)


def proposed(drafter: SuffixDrafter, sequence: Sequence) -> list[int]:
    return [token for draft in drafter.propose([sequence]) for token in draft.token_ids]


@pytest.mark.parametrize(
    "options",
    [
        {"max_num_seqs": 1},
        {"max_num_seqs": 8, "max_num_batched_tokens": 13},
        {"max_num_seqs": 16, "num_blocks": 14, "max_model_len": 56},
    ],
)
def test_texts_are_those_without_drafts(options: dict[str, Any]) -> None:
    requests = [
        ask([5 + i % 7, i % 11, 30], index=i, max_tokens=3 + i * 7 % 23, temperature=0.5 * (i % 2), seed=i % 3)
        for i in range(40)
    ]
    plain = serve(checked_engine(model=MODEL, max_num_seqs=4), requests)
    engine = checked_engine(model=MODEL, drafter=drafter_of(), level=Level.DETAILED, **options)
    records = serve(engine, requests)
    assert list(map(token_ids_of, records)) == list(map(token_ids_of, plain))
    assert reconciliation_of(engine, records).is_exact
    assert engine.sources.totals()["suffix_global"]["num_accepted_draft_tokens"] > 20
    assert sum(spec_of(record)["num_accepted_draft_tokens"] for record in records) > 50


def test_nobody_waits_and_the_first_output_is_seen_at_once() -> None:
    drafter = drafter_of()
    running, later = decoding([9, 9, 4]), decoding([9, 9, 4])
    running.request_index, later.request_index = 0, 1000
    for sequence in (running, later):
        drafter.begin(sequence)
        assert drafter.is_ready(sequence)
    assert proposed(drafter, later) == []
    ended(drafter, [4, 5])
    assert proposed(drafter, later) == proposed(drafter, running) == [5]


def test_later_outputs_are_seen_by_those_that_read_along() -> None:
    drafter, sequence = drafter_of(), decoding([9, 9, 4])
    drafter.begin(sequence)
    ended(drafter, [4, 5])
    assert proposed(drafter, sequence) == [5]
    for number in range(8):
        assert proposed(drafter, sequence) == [5], number
        ended(drafter, [9, 4, 6, 7])
    assert proposed(drafter, sequence) == [6, 7]


def test_outputs_of_an_earlier_part_of_the_run_are_seen() -> None:
    kept: list[tuple[int, int, Output]] = []
    first, second, sequence = drafter_of(), drafter_of(), decoding([9, 9, 4])
    first.generations.on_output = lambda *output: kept.append(output)
    ended(first, [4, 5])
    for output in kept:
        second.generations.remember(*output)
    second.begin(sequence)
    assert proposed(second, sequence) == [5]


def test_nothing_is_learnt_from_what_failed_or_from_another_run() -> None:
    drafter, sequence = drafter_of(), decoding([9, 9, 4])
    ended(drafter, [4, 5], reason="error")
    assert proposed(drafter, sequence) == []
    ended(drafter, [4, 5])
    assert proposed(drafter, sequence) == [5]
    drafter.generations.restart()
    assert proposed(drafter, sequence) == []


@pytest.mark.parametrize("most", [0, 5])
def test_what_nobody_asks_for_is_not_kept(most: int) -> None:
    drafter = drafter_of(most_outputs=most)
    for number in range(100):
        ended(drafter, [number, 1, 2])
    assert isinstance(drafter.generations, Arrivals)
    assert len(drafter.generations.pending) == most
    assert drafter.is_ready(decoding([1]))
    assert proposed(drafter, decoding([7, 7, 1])) == ([2] if most else [])


def test_a_million_tokens_stay_in_bounded_memory() -> None:
    drafter = drafter_of(most_outputs=1000)
    drafter.shared.most_nodes = 200_000
    generator = np.random.default_rng(0)
    largest = 0
    for index in range(5000):
        drafter.generations.remember(index, 0, generator.integers(0, 50, size=206))
        if index % 50 == 49:
            trie = drafter.shared.trie_for(decoding([1, 2, 3]))
            assert trie is not None
            largest = max(largest, trie.num_bytes)
            assert trie.num_nodes <= 200_000 + 6 * 206
    assert largest < 40_000_000


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ({"method": "suffix"}, Generations),
        ({"method": "suffix", "adaptive": True}, Arrivals),
        ({"method": "auto"}, Arrivals),
    ],
)
def test_only_where_times_decide_anyway(keys: dict[str, Any], kind: type[Generations]) -> None:
    generations = make_drafter(SpeculativeConfig.from_mapping(keys)).generations
    assert type(generations) is kind
    assert ("had ended" in generations.sentence) == (kind is Arrivals)
