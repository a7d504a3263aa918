"""Detailed runs of our own, replayed: the live trace bit for bit, whatever drafted, stopped, or was put back.

Where pages run short the scheduler cuts drafts, and the step that computes a preempted sequence again has none; a
replay cannot know either.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.means import Means
from batchspec.files import RecordedAnswers
from batchspec.replay.recorded import Recorded
from batchspec.replay.simulate import simulate
from batchspec.replay.trace import Trace
from batchspec.testing import ByteTokenizer
from tests.core.runs import ask, spec_of

from .live import CONTEXT, Hesitant, assert_same, in_order, prompt_of, requests_of, serve_to
from .logs import by_lookups, config_of, replayed


def means_with(recalled: Path | None) -> Means:
    if recalled is None:
        return Means()
    answers = RecordedAnswers(str(recalled), encode=ByteTokenizer().encode_plain)
    return Means(answers=lambda _: answers)


def config_with(method: str, k: int, recalled: Path | None) -> SpeculativeConfig:
    keys: dict[str, Any] = {"path": str(recalled)} if method == "recall" else {}
    if method == "ngram":
        keys |= {"prompt_lookup_min": 1, "prompt_lookup_max": 3}
    return config_of(method, k, **keys)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The responses of an earlier run at another seed, whose answers agree with the new ones for a while."""
    path = tmp_path_factory.mktemp("earlier") / "responses.jsonl"
    requests = [ask(prompt_of(i), index=i, max_tokens=20, temperature=0.4, seed=1) for i in range(0, 140, 2)]
    return serve_to(path, requests, make_drafter(config_of("ngram", 2, prompt_lookup_min=1))).path


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "batch of 1": {"max_num_seqs": 1},
    "large batch, cached prefixes": {"max_num_seqs": 16, "prefix_caching": True},
    "near the context's end": {"max_model_len": 40},
}


@pytest.mark.parametrize(("way", "k"), [("plain", 1), *((way, 4) for way in WAYS)])
@pytest.mark.parametrize("method", ["ngram", "suffix", "recall"])
def test_every_step_is_that_of_the_live_run(method: str, k: int, way: str, tmp_path: Path, earlier: Path) -> None:
    config, means = config_with(method, k, earlier), means_with(earlier)
    requests = requests_of(140)
    if way == "near the context's end":
        requests = [request for request in requests if not request.turns]
    served = serve_to(tmp_path / "log.jsonl", requests, make_drafter(config, means), **WAYS[way])
    limit = WAYS[way].get("max_model_len", CONTEXT)
    drafter = make_drafter(config, means)
    outputs = in_order(served.path)
    assert_same(served, [(one, simulate(one, drafter, context_limit=limit)) for one in outputs])
    if method == "ngram":
        fast = [(one, by_lookups(one, k=k, low=1, high=3, room=limit - len(one.prompt) - 1)) for one in outputs]
        assert_same(served, fast)


@pytest.mark.parametrize("method", ["ngram", "suffix", "recall"])
def test_preemption_drops_the_draft_of_the_step_that_computes_again_and_nothing_else(
    method: str, tmp_path: Path, earlier: Path
) -> None:
    """Every fifth step puts the youngest back although there are pages enough, so that no draft is cut for pages."""
    config, means = config_with(method, 3, earlier), means_with(earlier)
    served = serve_to(tmp_path / "log.jsonl", requests_of(140), make_drafter(config, means), preempt_every=5)
    outputs = in_order(served.path)
    assert len(served.again) > 20
    hesitant = Hesitant(make_drafter(config, means), places=served.again)
    assert_same(served, [(one, simulate(one, hesitant, context_limit=CONTEXT)) for one in outputs])
    names = {custom_id for custom_id, _, _ in served.again}
    kept = [record for record in served.records if record["custom_id"] not in names]
    assert len(kept) > 30
    drafter = make_drafter(config, means)
    traces = [(one, simulate(one, drafter, context_limit=CONTEXT)) for one in outputs]
    assert_same(replace(served, records=kept), [(one, trace) for one, trace in traces if one.custom_id not in names])


@pytest.mark.parametrize("method", ["ngram", "suffix", "recall"])
def test_short_of_pages_only_requests_whose_drafts_were_cut_differ(method: str, tmp_path: Path, earlier: Path) -> None:
    """A request that drafts the same in the same places with few pages as with ample ones has had no draft cut."""
    config, means = config_with(method, 3, earlier), means_with(earlier)
    requests = [request for request in requests_of(140) if not request.turns]
    ample = serve_to(tmp_path / "ample.jsonl", requests, make_drafter(config, means))
    few = {"num_blocks": 14, "block_size": 4, "max_model_len": 56}
    short = serve_to(tmp_path / "short.jsonl", requests, make_drafter(config, means), **few)
    uncut = [
        record
        for record, other in zip(short.records, ample.records, strict=True)
        if all(spec_of(record)[key] == spec_of(other)[key] for key in ("per_step_drafted", "per_step_position"))
    ]
    kept = {record["custom_id"] for record in uncut}
    assert kept & short.preempted
    drafter = make_drafter(config, means)
    traces = [(one, simulate(one, drafter, context_limit=56)) for one in in_order(short.path)]
    assert_same(replace(short, records=uncut), [(one, trace) for one, trace in traces if one.custom_id in kept])


def test_the_document_adds_up_what_the_records_state(tmp_path: Path) -> None:
    config = config_with("suffix", 4, None)
    served = serve_to(tmp_path / "log.jsonl", requests_of(140), make_drafter(config))
    document = replayed(served.path, configs=[config], machine={"max_model_len": CONTEXT})
    pooled = document["all"]["cells"][0]["pooled"]
    for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "num_decode_steps"):
        assert pooled[name] == sum(spec_of(record)[name] for record in served.records)
    histograms = [spec_of(record)["acceptance_histogram"] for record in served.records]
    assert pooled["acceptance_histogram"] == [sum(each) for each in zip(*histograms, strict=True)]
    assert pooled["num_discarded_tokens"] == sum(spec_of(record)["num_discarded_tokens"] for record in served.records)
    assert pooled["num_undecided_tokens"] == 0


def test_another_drafters_run_gives_the_same_trace(tmp_path: Path, earlier: Path) -> None:
    """The counterfactual: what suffix would have done on the outputs of an n-gram run is what it does."""
    ngram, suffix = config_with("ngram", 2, None), config_with("suffix", 4, None)
    requests = requests_of(140)
    first = serve_to(tmp_path / "ngram.jsonl", requests, make_drafter(ngram))
    second = serve_to(tmp_path / "suffix.jsonl", requests, make_drafter(suffix))
    drafter = make_drafter(suffix)
    outputs = in_order(first.path)
    traces = [(one, simulate(one, drafter, context_limit=CONTEXT)) for one in outputs]
    cut = {one.custom_id for one, trace in traces if _is_open(one, trace)}
    assert len(cut) < 60
    kept = [record for record in second.records if record["custom_id"] not in cut]
    assert_same(replace(second, records=kept), [(one, trace) for one, trace in traces if one.custom_id not in cut])


def _is_open(one: Recorded, trace: Trace) -> bool:
    """Whether the last draft reaches beyond what was recorded."""
    if not len(trace.position):
        return False
    end = trace.position[-1] + trace.accepted[-1]
    return bool(end == len(one.output) + len(one.cut) and trace.drafted[-1] > trace.accepted[-1])
