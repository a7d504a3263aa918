"""The suffix trie beside a search through all texts; what it costs is counted, not timed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.drafting.trie import Reader, SuffixTrie

from .suffixes import next_token, occurrences, walk

tokens = st.integers(0, 3)
text = st.lists(tokens, max_size=40)
depths = st.integers(2, 8)


def ids(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@settings(max_examples=300)
@given(text=text, depth=depths, limit=st.integers(1, 9), min_prob=st.sampled_from([0.0, 0.2, 0.5, 0.9]))
def test_the_continuation_of_a_growing_text(text: list[int], depth: int, limit: int, min_prob: float) -> None:
    trie = SuffixTrie(max_depth=depth)
    for end in range(1, len(text) + 1):
        trie.append(ids(text[end - 1 : end]))
        past = text[:end]
        lengths = [n for n in range(1, min(depth, end + 1)) if len(occurrences([past], past[end - n :])) > 1]
        found = trie.continuation(ids(past), num_tokens=limit, factor=1.0, min_prob=min_prob)
        if not lengths:
            assert found.token_ids == []
            continue
        most = min(limit, lengths[-1])
        expected = walk([past], past[end - lengths[-1] :], ignored=1, depth=depth, limit=most, min_prob=min_prob)
        assert (found.token_ids, found.match_length) == (expected[0], lengths[-1])
        assert found.token_probs == pytest.approx(expected[1])


@settings(max_examples=300)
@given(
    texts=st.lists(text, min_size=1, max_size=4), reading=text, depth=depths, slices=st.lists(st.integers(1, 9)),
    factor=st.sampled_from([0.5, 1.0, 3.0]),
)  # fmt: skip
def test_what_a_reader_finds_in_other_texts(
    texts: list[list[int]], reading: list[int], depth: int, slices: list[int], factor: float
) -> None:
    trie = SuffixTrie(max_depth=depth)
    for other in texts:
        trie.append(ids(other))
        trie.close()
    reader = Reader(trie)
    end = 0
    for size in [*slices, len(reading)]:
        reader.read(ids(reading[end : end + size]))
        end = min(len(reading), end + size)
        past = reading[:end]
        lengths = [n for n in range(1, min(depth, end + 1)) if next_token(texts, past[end - n :], ignored=0)]
        found = reader.continuation(ids(past), num_tokens=6, factor=factor, min_prob=0.1)
        usable = [n for n in lengths if factor * n >= 1]
        expected: tuple[list[int], list[float]] = ([], [])
        for length in reversed(usable):
            limit = min(6, int(factor * length))
            expected = walk(texts, past[end - length :], ignored=0, depth=depth, limit=limit, min_prob=0.1)
            if expected[0]:
                assert found.match_length == length
                break
        assert found.token_ids == expected[0]
        assert found.token_probs == pytest.approx(expected[1])


@given(text=st.lists(tokens, min_size=1, max_size=200))
def test_appending_at_once_is_appending_one_by_one(text: list[int]) -> None:
    whole, piecemeal = SuffixTrie(max_depth=6), SuffixTrie(max_depth=6)
    whole.append(ids(text))
    for token in text:
        piecemeal.append(ids([token]))
    found = [trie.continuation(ids(text), num_tokens=5, factor=2.0, min_prob=0.0) for trie in (whole, piecemeal)]
    assert found[0] == found[1]
    assert whole.num_nodes == piecemeal.num_nodes


def test_a_token_makes_at_most_one_node_for_each_depth_however_long_the_text() -> None:
    generator = np.random.default_rng(7)
    trie = SuffixTrie(max_depth=10)
    for start in range(0, 40_000, 1000):
        before = trie.num_nodes
        part = generator.integers(0, 3, size=1000)
        trie.append(part)
        assert trie.num_nodes - before <= 10 * 1000, start
    assert trie.num_tokens == 40_000
    assert trie.num_nodes <= sum(3**depth for depth in range(11))  # there are no more contexts than that


def test_text_that_never_repeats_takes_a_leaf_for_each_token() -> None:
    trie = SuffixTrie(max_depth=24)
    trie.append(np.arange(50_000))
    assert trie.num_nodes == 50_001
    assert trie.num_bytes < 6_000_000
    assert trie.continuation(np.arange(50_000), num_tokens=4, factor=1.0, min_prob=0.0).token_ids == []
