"""The Prometheus account: names, labels, zeros from the start, exposition, checkpoints."""

from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from batchspec.counters import Counters

COUNTERS = {
    "spec_decode_num_drafts",
    "spec_decode_num_draft_tokens",
    "spec_decode_num_accepted_tokens",
    "spec_decode_num_accepted_tokens_per_pos",
    "prompt_tokens",
    "generation_tokens",
    "request_success",
    "num_preemptions",
    "prefix_cache_queries",
    "prefix_cache_hits",
}
GAUGES = {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"}
HISTOGRAMS = {
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "e2e_request_latency_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
}


def parsed(counters: Counters) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Every sample of the exposition: name, then labels, then value; creation times left out."""
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(counters.exposition()):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                samples.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return samples


def observed(k: int = 3) -> Counters:
    """Counters after one step with three drafting rows."""
    counters = Counters(model_name="m", num_spec_tokens=k)
    accepted = np.array([[True, True, False], [False, False, False], [True, False, False]])
    counters.observe_drafts(num_drafted=np.array([3, 2, 1]), accepted=accepted)
    return counters


def test_series_have_the_names_types_and_labels_of_vllm() -> None:
    families = {family.name: family for family in text_string_to_metric_families(observed().exposition())}
    kinds = {name: family.type for name, family in families.items() if not name.endswith("_created")}
    expected = (
        dict.fromkeys(COUNTERS, "counter") | dict.fromkeys(GAUGES, "gauge") | dict.fromkeys(HISTOGRAMS, "histogram")
    )
    assert kinds == {f"vllm:{name}": kind for name, kind in expected.items()}
    for family in families.values():
        for sample in family.samples:
            assert sample.labels["model_name"] == "m"
            assert sample.labels["engine"] == "0"


def test_positions_and_reasons_exist_at_zero_from_the_start() -> None:
    samples = parsed(Counters(model_name="m", num_spec_tokens=4))
    positions = samples["vllm:spec_decode_num_accepted_tokens_per_pos_total"]
    assert [dict(labels)["position"] for labels in positions] == ["0", "1", "2", "3"]
    reasons = samples["vllm:request_success_total"]
    assert {dict(labels)["finished_reason"] for labels in reasons} >= {"stop", "length", "abort", "error"}
    for name in COUNTERS:
        assert set(samples[f"vllm:{name}_total"].values()) == {0.0}


def test_drafts_are_counted_from_the_mask() -> None:
    assert observed().totals() == {
        "num_spec_steps": 3,
        "num_draft_tokens": 6,
        "num_accepted_draft_tokens": 3,
        "num_accepted_tokens_per_pos": [2, 1, 0],
    }


def test_a_mask_narrower_than_k_leaves_the_other_positions_alone() -> None:
    assert observed(5).totals()["num_accepted_tokens_per_pos"] == [2, 1, 0, 0, 0]


def test_a_step_without_drafts_counts_nothing() -> None:
    counters = observed()
    before = counters.totals()
    counters.observe_drafts(num_drafted=np.zeros(0, dtype=np.int64), accepted=np.zeros((0, 0), dtype=np.bool_))
    assert counters.totals() == before


def test_speculation_off_has_no_positions_but_all_totals() -> None:
    totals = Counters(model_name="m", num_spec_tokens=0).totals()
    assert totals["num_accepted_tokens_per_pos"] == []
    assert totals["num_spec_steps"] == 0


def test_exposition_says_what_the_totals_say() -> None:
    samples = parsed(observed())
    labels = (("engine", "0"), ("model_name", "m"))
    assert samples["vllm:spec_decode_num_drafts_total"] == {labels: 3.0}
    assert samples["vllm:spec_decode_num_draft_tokens_total"] == {labels: 6.0}
    assert samples["vllm:spec_decode_num_accepted_tokens_total"] == {labels: 3.0}
    assert list(samples["vllm:spec_decode_num_accepted_tokens_per_pos_total"].values()) == [2.0, 1.0, 0.0]


def everything(counters: Counters) -> Counters:
    """Feed every observation once."""
    counters.observe_first_token(num_prompt_tokens=7, seconds=0.2)
    counters.observe_gap(seconds=0.3, num_tokens=3)
    counters.observe_finished(reason="stop", num_prompt_tokens=7, num_output_tokens=4, seconds=0.5)
    counters.observe_step(num_tokens=4, num_preemptions=2)
    counters.observe_load(num_running=3, num_waiting=5, usage=0.25)
    return counters


def test_each_observation_reaches_its_series() -> None:
    samples = parsed(everything(observed()))
    total = {name: sum(values.values()) for name, values in samples.items()}
    assert total["vllm:prompt_tokens_total"] == 7
    assert total["vllm:generation_tokens_total"] == 4
    assert total["vllm:num_preemptions_total"] == 2
    assert total["vllm:request_success_total"] == 1
    assert total["vllm:num_requests_running"] == 3
    assert total["vllm:num_requests_waiting"] == 5
    assert total["vllm:kv_cache_usage_perc"] == 0.25
    assert total["vllm:time_to_first_token_seconds_sum"] == 0.2
    assert total["vllm:inter_token_latency_seconds_count"] == 3
    assert total["vllm:inter_token_latency_seconds_sum"] == pytest.approx(0.3)
    assert total["vllm:e2e_request_latency_seconds_sum"] == 0.5
    assert total["vllm:request_prompt_tokens_sum"] == 7
    assert total["vllm:request_generation_tokens_sum"] == 4


def test_preemptions_are_given_as_a_running_total_and_counted_once() -> None:
    counters = Counters(model_name="m", num_spec_tokens=1)
    for total in (1, 1, 3):
        counters.observe_step(num_tokens=0, num_preemptions=total)
    assert list(parsed(counters)["vllm:num_preemptions_total"].values()) == [3.0]


def only_counters(counters: Counters) -> dict[str, Any]:
    return {name: values for name, values in parsed(counters).items() if name.endswith("_total")}


def test_a_checkpoint_restores_every_counter_and_counting_goes_on() -> None:
    first = everything(observed())
    resumed = Counters(model_name="m", num_spec_tokens=3)
    resumed.restore(first.snapshot())
    assert only_counters(resumed) == only_counters(first)
    everything(resumed)
    everything(first)
    first.num_preemptions.inc(2)  # a resumed run's scheduler counts from zero again
    assert only_counters(resumed) == only_counters(first)


def test_a_checkpoint_of_other_series_is_read_as_far_as_it_goes() -> None:
    counters = Counters(model_name="m", num_spec_tokens=1)
    counters.restore({**observed().snapshot(), "gone": 3.0})
    assert counters.totals()["num_spec_steps"] == 3
    assert counters.totals()["num_accepted_tokens_per_pos"] == [2]


def test_two_runs_do_not_share_a_registry_unless_given_one() -> None:
    registry = CollectorRegistry()
    counters = Counters(model_name="m", num_spec_tokens=1, registry=registry)
    assert counters.registry is registry
    Counters(model_name="m", num_spec_tokens=1)
    with pytest.raises(ValueError, match="Duplicated"):
        Counters(model_name="m", num_spec_tokens=1, registry=registry)
