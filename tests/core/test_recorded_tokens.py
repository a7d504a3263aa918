"""What detailed records tell of tokens, so that a run can be replayed: prompts, outputs, and what a stop cut off."""

from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.testing import ByteTokenizer, TableModel

from .runs import ask, ask_chat, body_of, checked_engine, serve
from .scripts import counting_drafter, wrong_drafter

EOS = ByteTokenizer.eos_id


def sequences_of(record: dict[str, Any]) -> Any:
    return body_of(record)["metrics"]["batchspec"]["sequences"]


def served(request: Any, *, level: Level = Level.DETAILED, drafter: Any = None) -> dict[str, Any]:
    engine = checked_engine(model=TableModel.counting(), drafter=drafter or counting_drafter(3), level=level)
    return serve(engine, [request])[0]


def test_prompt_and_output_stand_in_every_detailed_record() -> None:
    record = served(ask([10, 11], max_tokens=9))
    (sequence,) = sequences_of(record)
    assert sequence == {"prompt_token_ids": [10, 11], "token_ids": list(range(12, 21)), "cut_token_ids": []}


@pytest.mark.parametrize(("max_tokens", "cut"), [(1, []), (2, [14, 15, 16]), (4, [16]), (5, []), (6, [18, 19, 20])])
def test_what_the_length_cuts_off_is_told(max_tokens: int, cut: list[int]) -> None:
    (sequence,) = sequences_of(served(ask([10, 11], max_tokens=max_tokens)))
    assert sequence["token_ids"] == list(range(12, 12 + max_tokens))
    assert sequence["cut_token_ids"] == cut


def test_what_the_end_of_the_sequence_cuts_off_is_told() -> None:
    (sequence,) = sequences_of(served(ask([250], max_tokens=40)))
    assert sequence["token_ids"][-1] == EOS
    assert sequence["cut_token_ids"] == [0, 1, 2]


def test_the_targets_own_token_behind_a_stop_is_told_even_if_no_draft_matched_it() -> None:
    (sequence,) = sequences_of(served(ask([10, 11], max_tokens=4), drafter=wrong_drafter(3)))
    assert sequence["cut_token_ids"] == []
    drafter = counting_drafter(3, right=2)
    (sequence,) = sequences_of(served(ask([10, 11], max_tokens=3), drafter=drafter))
    assert (sequence["token_ids"], sequence["cut_token_ids"]) == ([12, 13, 14], [15])


def test_every_turn_of_a_conversation_stands_for_itself() -> None:
    record = served(ask_chat("ab", "cd", max_tokens=3))
    first, second = sequences_of(record)
    choices = body_of(record)["choices"]
    assert [first["token_ids"], second["token_ids"]] == [choice["token_ids"] for choice in choices]
    assert first["prompt_token_ids"] == body_of(record)["prompt_token_ids"]
    assert second["prompt_token_ids"][: len(first["prompt_token_ids"])] == first["prompt_token_ids"]
    assert len(second["prompt_token_ids"]) > len(first["prompt_token_ids"])


def test_a_summary_does_not_tell_them_and_several_samples_have_no_metrics() -> None:
    assert "sequences" not in body_of(served(ask([10], max_tokens=4), level=Level.SUMMARY))["metrics"]["batchspec"]
    record = served(ask([10], max_tokens=4, n=2, temperature=0.5))
    assert body_of(record)["metrics"] is None
    assert all(choice["token_ids"] and choice["prompt_token_ids"] == [10] for choice in body_of(record)["choices"])
