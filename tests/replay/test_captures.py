"""A real server's captures, replayed with their own settings and with each other's: the counterfactual is exact.

``tests/data/oracle/README.md`` says what was captured. What the server matched behind an output's end is not recorded,
so the last step of a replay may accept less than the server did; nothing else may differ.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from batchspec.report import totals_from_exposition

from .logs import by_lookups, config_of, recorded_in, replayed

ORACLE = Path(__file__).parents[1] / "data" / "oracle"
FOLDERS = ("ngram_k1_n1-1", "ngram_k3_n1-3", "ngram_k5_n2-4")
BY_GRAMMAR = {"json", "regex"}  # where the server cut drafts


def settings_of(folder: str) -> dict[str, int]:
    match = re.fullmatch(r"ngram_k(\d+)_n(\d+)-(\d+)", folder)
    assert match is not None
    return dict(zip(("k", "low", "high"), map(int, match.groups()), strict=True))


def responses(folder: str, group: str) -> Path:
    return ORACLE / folder / f"{group}.responses.jsonl"


def bodies(folder: str, group: str) -> dict[str, Any]:
    records = map(json.loads, responses(folder, group).read_text().splitlines())
    return {record["custom_id"]: record["response"]["body"] for record in records}


def compare(of: str, settings_from: str, group: str) -> list[str]:
    """Replay the outputs of one capture with the settings of another, and return the names of those compared."""
    captured = bodies(settings_from, group)
    compared = []
    for one in recorded_in(responses(of, group)):
        body = captured[one.custom_id]
        stated = (body["metrics"] or {}).get("speculative_decoding")
        is_equal = len(body["choices"]) == 1 and body["choices"][0]["token_ids"] == one.output.tolist()
        if stated is None or not is_equal or one.custom_id in BY_GRAMMAR:
            continue
        trace = by_lookups(one, **settings_of(settings_from))
        accepted, theirs = trace.accepted.tolist(), stated["per_step_accepted"] or []
        assert trace.drafted.tolist() == (stated["per_step_drafted"] or []), one.custom_id
        assert accepted[:-1] == theirs[:-1], one.custom_id
        if accepted != theirs:
            assert trace.position[-1] + accepted[-1] == len(one.output), one.custom_id
            assert accepted[-1] < theirs[-1]
        compared.append(one.custom_id)
    return compared


@pytest.mark.parametrize("settings_from", FOLDERS)
@pytest.mark.parametrize("of", [*FOLDERS, "none"])
def test_every_capture_with_the_settings_of_every_other(of: str, settings_from: str) -> None:
    """Greedy outputs are the same in all of them, so any of them tells what any other did."""
    assert len(compare(of, settings_from, "greedy")) == 24


@pytest.mark.parametrize("settings_from", FOLDERS)
@pytest.mark.parametrize("of", FOLDERS)
def test_stops_lengths_penalties_and_a_chat(of: str, settings_from: str) -> None:
    compared = set(compare(of, settings_from, "edges"))
    assert compared >= {"n1", "max1", "max2", "max3", "stoptok", "eos", "mintok", "penalty", "logprobs", "chat"}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("of", [*FOLDERS, "none"])
def test_the_sums_are_the_servers_counters(of: str, folder: str) -> None:
    """Steps and drafted tokens exactly, from any capture's outputs; accepted ones but for what no record tells."""
    before, after = (
        totals_from_exposition((ORACLE / folder / f"greedy.{when}.prom").read_text()) for when in ("before", "after")
    )
    counted = {name: after[name] - before[name] for name in ("num_spec_steps", "num_draft_tokens")}
    accepted = after["num_accepted_draft_tokens"] - before["num_accepted_draft_tokens"]
    k, low, high = settings_of(folder).values()
    config = config_of("ngram", k, prompt_lookup_min=low, prompt_lookup_max=high)
    (cell,) = replayed(responses(of, "greedy"), configs=[config])["all"]["cells"]
    pooled = cell["pooled"]
    assert {name: pooled[name] for name in counted} == counted
    assert pooled["num_accepted_draft_tokens"] <= accepted
    assert accepted <= pooled["num_accepted_draft_tokens"] + pooled["num_undecided_tokens"]


def test_all_draft_lengths_at_once_are_each_for_itself() -> None:
    path = responses("ngram_k5_n2-4", "greedy")
    keys = {"prompt_lookup_min": 2, "prompt_lookup_max": 4}
    together = replayed(path, configs=[config_of("ngram", k, **keys) for k in range(1, 9)])["all"]["cells"]
    for k, cell in enumerate(together, start=1):
        (alone,) = replayed(path, configs=[config_of("ngram", k, **keys)])["all"]["cells"]
        assert alone == cell
