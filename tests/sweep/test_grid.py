"""Which points a grid has, and what is said of one that is wrong."""

import pytest

from batchspec.acceptance import Level
from batchspec.errors import UsageError
from batchspec.settings import EngineSettings
from batchspec.sweep.grid import Point, parse_grids

BASE = EngineSettings(level=Level.SUMMARY)


def points(*grids: str) -> tuple[Point, ...]:
    return parse_grids(grids, BASE)


def names(*grids: str) -> list[str]:
    return [point.name for point in points(*grids)]


def test_the_last_key_changes_fastest_and_a_key_counts_where_it_means_something() -> None:
    assert names("method=none,ngram k=1,3 max_num_seqs=1,32") == [
        "method=none max_num_seqs=1",
        "method=none max_num_seqs=32",
        "method=ngram k=1 max_num_seqs=1",
        "method=ngram k=1 max_num_seqs=32",
        "method=ngram k=3 max_num_seqs=1",
        "method=ngram k=3 max_num_seqs=32",
    ]


def test_without_a_method_it_is_that_of_run() -> None:
    (point,) = points("num_speculative_tokens=5")
    speculative = point.engine.speculative
    assert (speculative.method, speculative.num_speculative_tokens) == ("ngram", 5)
    assert (speculative.prompt_lookup_min, speculative.prompt_lookup_max) == (1, 3)
    assert point.engine.level is Level.SUMMARY
    assert points("method=none")[0].engine.level is Level.NONE


def test_settings_that_come_to_the_same_are_one_point() -> None:
    assert names("k=2..4") == ["method=ngram k=2", "method=ngram k=3", "method=ngram k=4"]
    assert names("k=2..4", "method=ngram,none k=3 prompt_lookup_min=1 prompt_lookup_max=3")[3:] == ["method=none"]
    assert names("method=auto adaptive=true,false", "method=auto") == [
        "method=auto adaptive=true",
        "method=auto adaptive=false",
    ]


def test_every_key_reaches_its_setting() -> None:
    (auto,) = points(
        "method=auto k=4 prompt_lookup_min=2 prompt_lookup_max=5 suffix_decoding_max_tree_depth=9 "
        "suffix_decoding_max_cached_requests=-1 suffix_decoding_max_spec_factor=2 suffix_decoding_min_token_prob=0.25 "
        "draft_model='my draft' recall_path=old.jsonl adaptive=false forced_tokens=true max_num_seqs=3 "
        "max_num_batched_tokens=77 enable_prefix_caching=false"
    )
    assert auto.engine.speculative.document() == {
        "method": "auto",
        "num_speculative_tokens": 4,
        "path": "old.jsonl",
        "model": "my draft",
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 5,
        "suffix_decoding_max_tree_depth": 9,
        "suffix_decoding_max_cached_requests": -1,
        "suffix_decoding_max_spec_factor": 2.0,
        "suffix_decoding_min_token_prob": 0.25,
        "adaptive": False,
        "forced_tokens": True,
    }
    engine = auto.engine
    assert (engine.max_num_seqs, engine.max_num_batched_tokens, engine.prefix_caching) == (3, 77, False)
    assert points(auto.name) == (auto,), "a point's name is a grid of its own"


MISTAKES = [
    ("", "is empty: write it like"),
    ("k", "'k' is no key with values"),
    ("=3", "'=3' is no key with values"),
    ("k='1", "No closing quotation"),
    ("temperature=0,1", "unknown key 'temperature'; the known keys are method, k, "),
    ("k=1 num_speculative_tokens=2", "names k twice"),
    ("method=ngram,magic", "method takes none, ngram, suffix, draft_model, recall, auto or forced, not 'magic'"),
    ("k=few", "k takes whole numbers like 1,3,5 or 1..8, not 'few'"),
    ("k=5..1", "not '5..1'"),
    ("k=1,", "not ''"),
    ("adaptive=yes", "adaptive takes true or false, not 'yes'"),
    ("method=suffix suffix_decoding_min_token_prob=x", "takes numbers like 0.1,0.5, not 'x'"),
    ("method=recall recall_path=", "recall_path takes paths, not ''"),
    ("method=none k=3", "k means nothing to the method none; it is for ngram, suffix"),
    (
        "method=suffix,none prompt_lookup_max=3",
        "prompt_lookup_max means nothing to the method suffix, none; it is for ng",
    ),
    ("k=0", "at method=ngram k=0: --num-speculative-tokens .* from 1 to 256, not 0"),
    ("max_num_seqs=0", "at method=ngram max_num_seqs=0: --max-num-seqs must be at least 1"),
    ("prompt_lookup_min=3 prompt_lookup_max=2", "is 3, above prompt_lookup_max"),
    ("method=recall", "--recall-path .* is needed"),
    ("k=1..40 max_num_seqs=1..40", "has 1,600 combinations: give at most 1,000"),
]


@pytest.mark.parametrize(("grid", "sentence"), MISTAKES)
def test_a_mistake_is_a_sentence(grid: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as error:
        points(grid)
    assert "\n" not in str(error.value)
