"""Prompt lookup over a whole sequence at once is the drafter, step by step."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.drafting import NgramDrafter, SpeculativeConfig, make_drafter
from batchspec.replay.lookups import Lookups, find_lookups
from batchspec.replay.recorded import Recorded
from batchspec.replay.simulate import simulate
from batchspec.replay.trace import take_steps

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=50)


def recorded(prompt: list[int], output: list[int], *, cut: list[int] | None = None, index: int = 0) -> Recorded:
    return Recorded(
        prompt=np.array(prompt, dtype=np.int64),
        output=np.array(output, dtype=np.int64),
        cut=np.array(cut or [], dtype=np.int64),
        custom_id=f"r{index}",
        index=index,
    )


def lookups_of(one: Recorded, *, low: int, high: int, most: int) -> Lookups:
    return find_lookups(
        np.concatenate([one.prompt, one.output, one.cut]),
        num_prompt_tokens=len(one.prompt),
        num_output_tokens=len(one.output),
        min_length=low,
        max_length=high,
        most=most,
    )


@settings(max_examples=200)
@given(
    prompt=tokens,
    output=tokens,
    cut=st.lists(st.integers(0, 2), max_size=4),
    low=st.integers(1, 4),
    more=st.integers(0, 3),
    room=st.integers(1, 60),
)
def test_every_draft_length_at_once(
    prompt: list[int], output: list[int], cut: list[int], low: int, more: int, room: int
) -> None:
    one = recorded(prompt, output, cut=cut)
    lookups = lookups_of(one, low=low, high=low + more, most=6)
    for k in (1, 2, 6):
        drafter = NgramDrafter(num_spec_tokens=k, prompt_lookup_min=low, prompt_lookup_max=low + more)
        expected = simulate(one, drafter, context_limit=len(prompt) + 1 + room)
        found = take_steps(lookups, num_spec_tokens=k, room=room)
        for name in ("position", "drafted", "accepted", "rows", "tokens"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()
        assert found.num_decode_steps == expected.num_decode_steps == len(found.rows)
        assert found.num_discarded_tokens == expected.num_discarded_tokens
        assert found.tokens.sum() == len(output) - 1 + found.num_discarded_tokens


def test_tokens_with_large_ids_are_told_apart() -> None:
    one = recorded([2**31 + 5, 7, 5, 8, 2**31 + 5], [7])
    assert [each.tolist() for each in lookups_of(one, low=1, high=3, most=4)] == [[4], [1]]


def test_a_drafter_that_learns_sees_what_it_would_have_seen() -> None:
    drafter = make_drafter(SpeculativeConfig.from_mapping({"method": "suffix", "num_speculative_tokens": 4}))
    same = [9, 8, 7, 6, 5, 4, 3, 2]
    traces = [simulate(recorded([1], same, index=i), drafter) for i in range(130)]
    assert [trace.accepted.sum() for trace in traces[:128]] == [0] * 128
    assert traces[128].accepted.sum() > 4
