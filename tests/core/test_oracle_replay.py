"""The recorded token ids of a real server, replayed through our own drafter and recorder.

``data/oracle/README.md`` says what was captured. A replay cannot see tokens that the server matched but did not emit,
so where the output ends inside a draft, the last step can count fewer matches than the server did. Nothing else may
differ.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from batchspec.acceptance import DetailedRecorder
from batchspec.drafting import NgramDrafter

from .sequences import decoding

ORACLE = Path(__file__).parents[1] / "data" / "oracle"
FOLDERS = ("ngram_k1_n1-1", "ngram_k3_n1-3", "ngram_k5_n2-4")


@dataclass(frozen=True, kw_only=True)
class Replay:
    """One request's steps, and whether the last draft reaches beyond the recorded output."""

    recorder: DetailedRecorder
    ends_inside_a_draft: bool


def drafter_named(folder: str) -> NgramDrafter:
    """The drafter that a folder's name describes: k, shortest and longest suffix."""
    match = re.fullmatch(r"ngram_k(\d+)_n(\d+)-(\d+)", folder)
    assert match is not None
    k, low, high = map(int, match.groups())
    return NgramDrafter(num_spec_tokens=k, prompt_lookup_min=low, prompt_lookup_max=high)


def replay(prompt: list[int], output: list[int], drafter: NgramDrafter) -> Replay:
    """Draft at every step as an engine would, with the recorded output as the target."""
    sequence = decoding([*prompt, output[0]])
    recorder = DetailedRecorder(num_spec_tokens=drafter.num_spec_tokens)
    draft: list[int] = []
    rest: list[int] = []
    while sequence.num_output_tokens < len(output):
        position = sequence.num_output_tokens
        rest = output[position:]
        drafts = drafter.propose([sequence])
        draft = drafts[0].token_ids if drafts else []
        num_accepted = 0
        while num_accepted < min(len(draft), len(rest)) and draft[num_accepted] == rest[num_accepted]:
            num_accepted += 1
        emitted = rest[: num_accepted + 1]
        sequence.append(emitted)
        recorder.record(num_drafted=len(draft), num_accepted=num_accepted, num_emitted=len(emitted), position=position)
    return Replay(recorder=recorder, ends_inside_a_draft=len(draft) > len(rest) and draft[: len(rest)] == rest)


def captures(folder: str, group: str) -> dict[str, dict[str, Any]]:
    """The response bodies of a group by custom id."""
    lines = (ORACLE / folder / f"{group}.responses.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return {record["custom_id"]: record["response"]["body"] for record in records}


def replayed(body: dict[str, Any], folder: str) -> tuple[dict[str, Any], Replay]:
    """What the server recorded, and what the replay gives."""
    choice = body["choices"][0]
    return body["metrics"]["speculative_decoding"], replay(
        choice["prompt_token_ids"], choice["token_ids"], drafter_named(folder)
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_step_of_the_greedy_captures(folder: str) -> None:
    bodies = captures(folder, "greedy")
    assert len(bodies) == 24
    for custom_id, body in bodies.items():
        theirs, ours = replayed(body, folder)
        assert ours.recorder.per_step_drafted == theirs["per_step_drafted"], custom_id
        if ours.recorder.per_step_accepted != theirs["per_step_accepted"]:
            assert ours.ends_inside_a_draft, custom_id
            assert ours.recorder.per_step_accepted[:-1] == theirs["per_step_accepted"][:-1], custom_id
            assert ours.recorder.per_step_accepted[-1] < theirs["per_step_accepted"][-1], custom_id
        else:
            assert ours.recorder.speculative_decoding() == theirs, custom_id


def test_exactly_22_of_the_72_end_inside_an_accepted_draft() -> None:
    """Four more end inside a draft of which the server accepted nothing behind the output's end."""
    pairs = [replayed(body, folder) for folder in FOLDERS for body in captures(folder, "greedy").values()]
    differ = [ours.recorder.per_step_accepted != theirs["per_step_accepted"] for theirs, ours in pairs]
    assert (sum(differ), len(differ)) == (22, 72)
    assert sum(ours.ends_inside_a_draft for _, ours in pairs) == 26


def test_two_tokens_emitted_three_of_three_accepted() -> None:
    """The capture that settles the rule on ``max_tokens``: the draft was not shortened, nor its count cut."""
    body = captures("ngram_k3_n1-3", "edges")["max2"]
    theirs, ours = replayed(body, "ngram_k3_n1-3")
    assert len(body["choices"][0]["token_ids"]) == 2
    assert theirs["per_step_accepted"] == theirs["per_step_drafted"] == [3]
    assert ours.recorder.per_step_drafted == [3]
    assert ours.ends_inside_a_draft
