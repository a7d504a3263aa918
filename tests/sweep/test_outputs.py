"""Two runs' outputs beside each other: every kind of difference is found, named and counted."""

from pathlib import Path
from typing import Any

import pytest

from batchspec.sweep.outputs import RunOutputs, compare_outputs
from tests.compare.making import answer, failure, write_run

SAME = answer("same", texts=["as it was"])


def compared(tmp_path: Path, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> RunOutputs:
    for name, rows in (("one", one), ("other", other)):
        (tmp_path / name).mkdir()
        write_run(tmp_path / name / "responses.jsonl", rows)
    return compare_outputs(tmp_path / "one", tmp_path / "other")


def ending(row: dict[str, Any], reason: str) -> dict[str, Any]:
    row["response"]["body"]["choices"][0]["finish_reason"] = reason
    return row


def detailed(custom_id: str, ids: list[int]) -> dict[str, Any]:
    """A record of ours that was not asked for ids, and has them in its metrics."""
    sequences = [{"prompt_token_ids": [1], "token_ids": ids, "cut_token_ids": []}]
    return answer(
        custom_id, [(1, 1)], beside={"num_decode_steps": 1, "num_discarded_tokens": 0, "sequences": sequences}
    )


def streamed(custom_id: str, *texts: str) -> dict[str, Any]:
    chunks = [{"object": "text_completion", "choices": [{"index": 0, "text": text}]} for text in texts]
    chunks[-1]["choices"][0]["finish_reason"] = "stop"  # type: ignore[index]
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": chunks}, "error": None}


DIFFERENCES = [
    (answer("x", texts=["Hello!"]), answer("x", texts=["Hell?!"]), "text", 4, None),
    (answer("x", texts=["Hello"]), answer("x", texts=["Hel"]), "text", 3, None),
    (answer("x", token_ids=[1, 2, 3]), answer("x", token_ids=[1, 9, 3]), "token ids", None, 1),
    (detailed("x", [1, 2, 3]), detailed("x", [1, 2]), "token ids", None, 2),
    (answer("x", texts=["a", "b"]), answer("x", texts=["a", "c"]), "text", 0, None),
    (answer("x", tokens=10), answer("x", tokens=11), "number of tokens", None, None),
    (answer("x"), ending(answer("x"), "length"), "finish reason", None, None),
    (answer("x"), failure("x"), "served", None, None),
    (failure("x"), answer("x"), "served", None, None),
    (streamed("x", "He", "llo"), streamed("x", "Hel", "p"), "text", 3, None),
]


@pytest.mark.parametrize(("one", "other", "what", "character", "token"), DIFFERENCES)
def test_a_difference_is_named(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], what: str, character: int | None, token: int | None
) -> None:
    found = compared(tmp_path, [SAME, one, one], [SAME, other, other])
    assert (found.num_compared, found.num_different) == (3, 2)
    assert found.first is not None
    assert (found.first.custom_id, found.first.what) == ("x", what)
    place = found.first.place
    assert ((place and place.character), (place and place.token)) == (character, token)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (failure("x"), failure("x")),
        (streamed("x", "He", "llo"), streamed("x", "H", "ell", "o")),
        (answer("x", [(3, 1), (3, 2)]), answer("x")),
        (detailed("x", [1, 2]), answer("x", token_ids=[1, 2])),
        (detailed("x", [1, 2]), answer("x")),
    ],
)
def test_how_an_answer_came_about_is_no_difference(tmp_path: Path, one: dict[str, Any], other: dict[str, Any]) -> None:
    found = compared(tmp_path, [one], [other])
    assert (found.num_compared, found.num_different, found.first) == (1, 0, None)


def test_token_ids_count_where_both_tell_them(tmp_path: Path) -> None:
    one = [detailed("a", [1]), detailed("b", [2]), failure("c"), answer("d")]
    other = [answer("a", token_ids=[1]), answer("b"), failure("c"), answer("d")]
    assert compared(tmp_path, one, other).num_with_token_ids == 1


def test_a_record_that_only_one_run_has_is_a_difference(tmp_path: Path) -> None:
    found = compared(tmp_path, [SAME], [SAME, answer("more")])
    assert found.first is not None
    assert (found.num_different, found.first.custom_id, found.first.what) == (1, "more", "served")
