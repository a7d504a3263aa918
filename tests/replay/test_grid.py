"""The settings of a replay from its flags."""

from typing import Any

import pytest

from batchspec.errors import UsageError
from batchspec.replay.grid import parse_config, parse_lengths, parse_methods, settings_for


def test_lengths_and_methods() -> None:
    assert parse_lengths("1..8") == list(range(1, 9))
    assert parse_lengths("5, 1,3,3") == [1, 3, 5]
    assert parse_lengths("1..3,2..4,256") == [1, 2, 3, 4, 256]
    assert parse_methods("ngram, suffix,ngram,recall") == ["ngram", "suffix", "recall"]


@pytest.mark.parametrize("text", ["", "0", "0..3", "3..1", "1..257", "1-3", "1..", "a", "1.5", "-1", "1,,2"])
def test_lengths_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"from 1 to 256, like 1\.\.8 or 1,3,5, not"):
        parse_lengths(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("auto", "replay the drafters"), ("none", "drafts nothing"), ("forced", "grammar")],
)
def test_methods_that_cannot_be_replayed(text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        parse_methods(f"ngram,{text}")
    with pytest.raises(UsageError, match="'magic' is not known"):
        parse_methods("magic")


def test_every_key_goes_to_the_methods_that_heed_it() -> None:
    given = {"prompt_lookup_max": 4, "path": "old.jsonl", "suffix_decoding_max_tree_depth": 9}
    ngram, suffix, recall = settings_for(["ngram", "suffix", "recall"], [2], given)
    assert (ngram.prompt_lookup_min, ngram.prompt_lookup_max) == (4, 4)
    assert suffix.suffix_decoding_max_tree_depth == recall.suffix_decoding_max_tree_depth == 9
    assert (suffix.path, recall.path) == (None, "old.jsonl")
    bare = settings_for(["ngram"], [1, 2], {})
    assert [(one.num_speculative_tokens, one.prompt_lookup_min, one.prompt_lookup_max) for one in bare] == [
        (1, 1, 3),
        (2, 1, 3),
    ]


@pytest.mark.parametrize(
    ("methods", "given", "expected"),
    [
        (["ngram"], {"path": "x"}, "means nothing to the method ngram"),
        (["suffix"], {"prompt_lookup_min": 1}, "means nothing to the method suffix"),
        (["recall"], {}, "--recall-path"),
        (["ngram"], {"k": 3}, "unknown key 'k'"),
        (["ngram"], {"prompt_lookup_min": 4, "prompt_lookup_max": 2}, "above"),
        (["ngram"], {"prompt_lookup_max": 0}, "from 1 to 256"),
    ],
)
def test_keys_that_are_wrong(methods: list[str], given: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        settings_for(methods, [2], given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"method": "ngram"}', "by its flag"),
        ('{"num_speculative_tokens": 3}', "by its flag"),
        ('{"adaptive": true}', "cannot be replayed"),
    ],
)
def test_configurations_that_are_wrong(text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        parse_config(text)
    assert parse_config(None) == {}
