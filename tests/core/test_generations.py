"""Which outputs are visible to whom: by index alone, and never one that could still change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.drafting.generations import Generations
from batchspec.drafting.shared import SharedOutputs
from batchspec.sequence import Sequence

from .sequences import waiting


def sequence_of(index: int, *, sample_index: int = 0, prompt: list[int] | None = None) -> Sequence:
    sequence = waiting([9, 9, 9, 9] if prompt is None else prompt, max_tokens=2000)
    sequence.request_index, sequence.sample_index = index, sample_index
    return sequence


def write(sequence: Sequence, *, length: int, token: int | None = None) -> None:
    token = sequence.request_index if token is None else token
    for _ in range(length - sequence.num_output_tokens):
        sequence.append([token])


def end(generations: Generations, sequence: Sequence) -> None:
    sequence.finish_reason = "stop"
    generations.end(sequence)


def test_a_request_waits_for_two_generations_before_its_own_and_for_nobody_else() -> None:
    generations = Generations(size=2, context=2)
    members = [sequence_of(index) for index in range(6)]
    for member in members:
        generations.begin(member)
    assert [generations.is_ready(member) for member in members] == [True, True, True, True, False, False]
    write(members[0], length=3)
    end(generations, members[0])
    assert not generations.is_ready(members[4])
    write(members[1], length=2)
    end(generations, members[1])
    assert generations.is_ready(members[4])
    assert [text.tolist() for text in generations.visible[0]] == [[9, 9, 0, 0, 0], [9, 9, 1, 1]]


def test_a_long_output_keeps_nobody_waiting_once_what_is_seen_of_it_is_written() -> None:
    generations = Generations(size=1, context=1)
    first, third = sequence_of(0), sequence_of(2)
    generations.begin(first)
    generations.begin(third)
    write(first, length=256)
    assert not generations.is_ready(third)
    assert generations.is_within(first)
    write(first, length=257)
    assert generations.is_ready(third)
    assert not generations.is_within(first)
    assert generations.visible[0][0].tolist() == [9] + [0] * 256
    end(generations, first)
    assert len(generations.visible[0]) == 1


def test_twice_the_median_of_two_generations_before_is_seen() -> None:
    generations = Generations(size=3, context=1)
    for index, length in enumerate([100, 40, 10, 7, 7, 7]):
        member = sequence_of(index)
        generations.begin(member)
        write(member, length=length)
        end(generations, member)
    long = [sequence_of(index) for index in (6, 9)]
    for member in long:
        generations.begin(member)
        assert generations.is_ready(member)
        write(member, length=200)
    end(generations, long[0])
    assert not generations.is_within(long[0])
    last = sequence_of(15)
    generations.begin(last)
    assert generations.is_ready(last)
    assert [len(text) - 1 for text in generations.visible[2]] == [80]
    assert [len(text) - 1 for text in generations.visible[3]] == [16]


def test_failures_turns_and_samples() -> None:
    generations = Generations(size=1, context=1)
    samples = [sequence_of(0, sample_index=number) for number in (1, 0)]
    turn, failed, later = sequence_of(0, sample_index=0), sequence_of(1), sequence_of(4)
    for member in (*samples, failed, later):
        generations.begin(member)
    for member in samples:
        write(member, length=2, token=5 + member.sample_index)
        end(generations, member)
    generations.begin(turn)
    write(failed, length=2)
    failed.finish_reason = "error"
    generations.end(failed)
    assert generations.is_ready(later)
    assert [text.tolist() for text in generations.visible[0]] == [[9, 5, 5], [9, 6, 6]]
    assert generations.visible[1] == []
    end(generations, turn)


def test_short_prompts_are_padded_so_that_lengths_are_those_of_outputs() -> None:
    generations = Generations(size=1, context=4)
    short, later = sequence_of(0, prompt=[9]), sequence_of(2)
    generations.begin(short)
    write(short, length=1)
    end(generations, short)
    assert generations.is_ready(later)
    assert generations.visible[0][0].tolist() == [-1, -1, -1, 9, 0]


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=8, max_size=24), data=st.data(), slots=st.integers(1, 6),
    kept=st.sampled_from([-1, 3, 8]),
)  # fmt: skip
def test_what_is_seen_depends_on_texts_alone(lengths: list[int], data: st.DataObject, slots: int, kept: int) -> None:
    def seen(slots: int, speed: st.SearchStrategy[int], num_done: int) -> list[tuple[int, ...]]:
        generations = Generations(size=3, context=1)
        shared = SharedOutputs(generations, max_depth=4, most_outputs=kept)
        for index in range(num_done):
            output = np.array([9] + [index % 5] * lengths[index], dtype=np.int64)
            generations.remember(index, 0, output)
        waiting_line = [sequence_of(index) for index in range(num_done, len(lengths))]
        for member in waiting_line:
            generations.begin(member)
        running: list[Sequence] = []
        found: dict[int, tuple[int, ...]] = {}
        while waiting_line or running:
            while waiting_line and len(running) < slots and generations.is_ready(waiting_line[0]):
                running.append(waiting_line.pop(0))
            assert running
            for member in list(running):
                trie = shared.trie_for(member)
                key = member.request_index
                now = () if trie is None else tuple(trie._text[: trie.num_tokens].tolist())
                assert not now or found.setdefault(key, now) == now
                found.setdefault(key, now)
                longest = lengths[key]
                write(member, length=min(longest, member.num_output_tokens + data.draw(speed)), token=key % 5)
                if member.num_output_tokens == longest:
                    running.remove(member)
                    end(generations, member)
        return [found[key] for key in sorted(found) if key >= len(lengths) // 2]

    expected = seen(slots, st.integers(1, 4), 0)
    assert seen(data.draw(st.integers(1, 6)), st.integers(1, 20), 0) == expected
    resumed = seen(slots, st.integers(1, 9), len(lengths) // 2)
    assert resumed == expected


@pytest.mark.parametrize("bound", [{"most_outputs": 4}, {"most_outputs": -1, "most_nodes": 200}])
def test_the_older_half_is_forgotten(bound: dict[str, int]) -> None:
    generations = Generations(size=1, context=1)
    shared = SharedOutputs(generations, max_depth=3, **{"most_outputs": -1} | bound)
    for index in range(60):
        member = sequence_of(index)
        generations.begin(member)
        assert generations.is_ready(member)
        trie = shared.trie_for(member)
        if trie is not None:
            assert trie.num_nodes <= 200 + 3 * 20
            assert bound["most_outputs"] < 0 or trie.num_tokens <= 4 * 12
        write(member, length=9)
        end(generations, member)
    assert trie is not None
    assert 57 in trie._text
    assert 3 not in trie._text
    assert len(generations.visible) <= 2
