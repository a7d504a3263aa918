"""Where two answers part: the first character, the first token, and what stands around it."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batchspec.compare.answers import Output
from batchspec.compare.texts import Divergence, find_divergence


def outputs(*texts: str, ids: Sequence[int] | None = None) -> list[Output]:
    return [Output(text=text, token_ids=ids, finish_reason="stop") for text in texts]


def parted(ours: list[Output], theirs: list[Output]) -> Divergence:
    divergence = find_divergence(ours, theirs)
    assert divergence is not None
    return divergence


def test_equal_answers_do_not_part() -> None:
    assert find_divergence(outputs("same", "other"), outputs("same", "other")) is None
    assert find_divergence(outputs("same", ids=[1, 2]), outputs("same", ids=[1, 2])) is None
    assert find_divergence([], []) is None


def test_the_first_character_and_token() -> None:
    divergence = parted(outputs("the cat sat", ids=[5, 6, 7]), outputs("the dog sat", ids=[5, 9, 7]))
    assert (divergence.choice, divergence.character, divergence.token) == (0, 4, 1)
    assert not divergence.is_cut
    assert divergence.texts == ("the cat sat", "the dog sat")


def test_a_text_that_ends_early() -> None:
    divergence = parted(outputs("the cat", ids=[5, 6]), outputs("the cat sat", ids=[5, 6, 7]))
    assert (divergence.character, divergence.token, divergence.is_cut) == (7, 2, True)


def test_a_later_choice_and_a_choice_that_only_one_has() -> None:
    assert parted(outputs("a", "b"), outputs("a", "c")).choice == 1
    divergence = parted(outputs("a"), outputs("a", "more"))
    assert (divergence.choice, divergence.character, divergence.is_cut) == (1, 0, True)


def test_the_same_text_of_other_tokens() -> None:
    divergence = parted(outputs("abc", ids=[1, 2]), outputs("abc", ids=[3]))
    assert (divergence.character, divergence.token) == (None, 0)


def test_ids_that_only_one_run_tells_are_not_compared() -> None:
    assert find_divergence(outputs("abc", ids=[1, 2]), outputs("abc")) is None
    assert parted(outputs("abc", ids=[1]), outputs("abd")).token is None


def test_long_texts_are_shown_around_the_place() -> None:
    divergence = parted(outputs("a" * 100 + "x" + "b" * 100), outputs("a" * 100 + "y" + "b" * 100))
    assert divergence.texts[0] == "…" + "a" * 24 + "x" + "b" * 23 + "…"


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_the_place_is_the_first_one_that_differs(shared: str, one: str, other: str) -> None:
    divergence: Any = find_divergence(outputs(shared + one), outputs(shared + other))
    if one == other:
        assert divergence is None
        return
    place = divergence.character
    assert (shared + one)[:place] == (shared + other)[:place]
    assert (shared + one)[place : place + 1] != (shared + other)[place : place + 1]
