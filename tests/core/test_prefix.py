"""Beginnings that sequences share are computed once, and nothing but the work shows it."""

import pytest

from batchspec.testing import ByteTokenizer, TableModel

from .paged import PagedModel
from .runs import ask, body_of, checked_engine, sample_of, serve
from .scripts import counting_drafter
from .workloads import prone_table

HEADER = [97 + i % 6 for i in range(600)]
EOS = ByteTokenizer.eos_id


def run(*, prefix_caching: bool, num_blocks: int | None = None, n: int = 1) -> tuple[list[object], PagedModel, float]:
    """Serve 64 requests that share a header of 600 tokens, and 10 that share another of 297."""
    model = PagedModel(prone_table(1, end=-1.0, is_poisoned=False), block_size=16)
    engine = checked_engine(
        model=model,
        prefix_caching=prefix_caching,
        max_num_seqs=16,
        max_num_batched_tokens=512,
        max_model_len=640,
        block_size=16,
        num_blocks=num_blocks,
    )
    requests = [ask([*HEADER, 97 + i % 5, 98 + i // 60], index=i, max_tokens=4, n=n) for i in range(64)]
    requests += [ask([*HEADER[3:300], 97 + i], index=64 + i, max_tokens=3, temperature=0.9, n=n) for i in range(10)]
    bodies = [body_of(record)["choices"] for record in serve(engine, requests)]
    queries, hits = (sample_of(engine, f"prefix_cache_{name}_total") for name in ("queries", "hits"))
    prompts = 64 * (len(HEADER) + 2) + 10 * (297 + 1)
    assert queries == (n * prompts if prefix_caching else 0)
    return bodies, model, hits


def test_a_shared_header_is_computed_once() -> None:
    expected, plain, no_hits = run(prefix_caching=False)
    found, shared, hits = run(prefix_caching=True)
    assert found == expected
    assert no_hits == 0
    assert plain.num_tokens - shared.num_tokens == hits
    assert shared.num_tokens < plain.num_tokens / 8


def test_samples_share_their_prompt() -> None:
    expected, plain, _ = run(prefix_caching=False, n=3)
    found, shared, _ = run(prefix_caching=True, n=3)
    assert found == expected
    assert shared.num_tokens < plain.num_tokens / 8


@pytest.mark.parametrize("num_blocks", [40, 41, 55, 90])
def test_a_full_cache_forgets_and_the_output_stays(num_blocks: int) -> None:
    expected, _, _ = run(prefix_caching=False)
    found, _, hits = run(prefix_caching=True, num_blocks=num_blocks)
    assert found == expected
    assert hits > 0


def test_a_prompt_whose_log_probabilities_are_wanted_is_computed_anew() -> None:
    model = PagedModel(prone_table(1, end=-1.0, is_poisoned=False), block_size=4)
    engine = checked_engine(model=model, prefix_caching=True, block_size=4)
    requests = [ask(HEADER[:40], index=i, max_tokens=2, prompt_logprobs=1 if i else None) for i in range(3)]
    _, first, second = (body_of(record)["choices"][0] for record in serve(engine, requests))
    assert first["prompt_logprobs"] == second["prompt_logprobs"]
    assert len(first["prompt_logprobs"]) == 40


def test_what_a_stop_cut_off_is_not_kept() -> None:
    """The drafts are right and go beyond the end; pages of one token each show every token too many."""
    table = TableModel.counting().table
    engine = checked_engine(model=TableModel(table), drafter=counting_drafter(5), prefix_caching=True, block_size=1)
    (first,) = serve(engine, [ask([97], index=0, max_tokens=3)])
    assert body_of(first)["choices"][0]["token_ids"] == [98, 99, 100]
    assert sample_of(engine, "prefix_cache_hits_total") == 0
    (second,) = serve(engine, [ask([97, 98, 99, 100, 101, 102], index=1, max_tokens=2)])
    assert body_of(second)["choices"][0]["token_ids"] == [103, 104]
    assert sample_of(engine, "prefix_cache_hits_total") == 4  # up to 100; 101 and 102 were drafted behind the end
