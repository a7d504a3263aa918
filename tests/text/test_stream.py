"""Stop texts against a reference that looks at the whole text after every character, and what may be shown when."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.testing import ByteTokenizer
from batchspec.text import TextStream

TOKENIZER = ByteTokenizer()
TEXTS = st.text("abé漢", max_size=24)
STOPS = st.lists(st.text("abé漢", min_size=1, max_size=5), max_size=3).map(tuple)


class Chunks:
    """A decoder to which a token is an index into a list of texts."""

    def __init__(self, chunks: list[str]):
        self.chunks = chunks

    def push(self, token_id: int) -> str:
        return self.chunks[token_id]

    def flush(self) -> str:
        return ""


def stream_of(chunks: list[str], **options: Any) -> TextStream:
    return TextStream(Chunks(chunks), **options)


def reference(
    chunks: list[str], *, stop: tuple[str, ...], include_stop: bool, min_tokens: int
) -> tuple[str, str | None, list[int]]:
    """Return the text, the stop text found and the lengths, one character at a time."""
    text = ""
    lengths: list[int] = []
    for number, chunk in enumerate(chunks):
        for position, char in enumerate(chunk):
            text += char
            found = max((s for s in stop if text.endswith(s)), key=len, default=None)
            if found is not None and number >= min_tokens:
                whole = len(text) + len(chunk) - position - 1
                cut = text if include_stop else text[: len(text) - len(found)]
                return cut, found, [*lengths, whole]
        lengths.append(len(text))
    return text, None, lengths


def may_show(text: str, stop: tuple[str, ...]) -> str:
    """Return the text without the longest end that begins a stop text."""
    sizes = [size for s in stop for size in range(1, len(s)) if text.endswith(s[:size])]
    return text[: len(text) - max(sizes, default=0)]


@given(st.lists(st.text("ab漢", max_size=4), max_size=12), STOPS, st.booleans(), st.integers(0, 4))
def test_stops_as_the_reference_does(
    chunks: list[str], stop: tuple[str, ...], include_stop: bool, min_tokens: int
) -> None:
    stream = stream_of(chunks, stop=stop, include_stop=include_stop, min_tokens=min_tokens)
    text, found, lengths = reference(chunks, stop=stop, include_stop=include_stop, min_tokens=min_tokens)
    shown = ""
    for token in range(len(chunks)):
        hit = stream.push(token)
        shown += stream.take()
        if hit is None:
            assert shown == (stream.text if include_stop else may_show(stream.text, stop))
        assert (hit is not None) == (found is not None and token == len(lengths) - 1)
        if hit is not None:
            assert hit == found
            break
    else:
        stream.finish()
    assert stream.text == text
    assert shown + stream.take() == text
    assert stream.lengths == lengths


@given(TEXTS, STOPS, st.lists(st.booleans(), min_size=100, max_size=100))
def test_text_does_not_depend_on_when_it_is_taken(text: str, stop: tuple[str, ...], takes: list[bool]) -> None:
    token_ids = list(text.encode())
    streams = [TextStream(TOKENIZER.decoder(prompt_ids=[]), stop=stop) for _ in range(2)]
    shown = ""
    found: list[str | None] = [None, None]
    for token, take in zip(token_ids, takes, strict=False):
        found = [stream.push(token) for stream in streams]
        shown += streams[1].take() if take else ""
        assert found[0] == found[1]
        if any(found):
            break
    if not any(found):
        for stream in streams:
            stream.finish()
    final = streams[0].take()
    assert shown + streams[1].take() == final == streams[0].text
    assert final == reference(list(text), stop=stop, include_stop=False, min_tokens=0)[0]


@given(st.lists(st.integers(0, 256), max_size=30))
def test_any_bytes_come_out_whole(token_ids: list[int]) -> None:
    stream = TextStream(TOKENIZER.decoder(prompt_ids=[]), stop=("never this one",))
    shown = ""
    for token in token_ids:
        stream.push(token)
        shown += stream.take()
    stream.finish()
    assert shown + stream.take() == stream.text == TOKENIZER.decode(token_ids, prompt_ids=[])


@pytest.mark.parametrize(
    ("stop", "include_stop", "min_tokens", "text", "found"),
    [
        (("lo w",), False, 0, "hel", "lo w"),
        (("lo w",), True, 0, "hello w", "lo w"),
        (("world", "lo"), False, 0, "hel", "lo"),  # ends first, though given last
        (("o", "llo", "lo"), False, 0, "he", "llo"),  # all end together: the one that began first
        (("lo world", "wor"), False, 0, "hello ", "wor"),
        (("he", "wor"), False, 1, "hello ", "wor"),  # ends within the first token
        (("hello w",), False, 1, "", "hello w"),  # begins there, ends later
        (("l",), False, 2, "hello wor", "l"),
        (("l",), False, 3, "hello world", None),
        ((), False, 0, "hello world", None),
    ],
)
def test_examples(stop: tuple[str, ...], include_stop: bool, min_tokens: int, text: str, found: str | None) -> None:
    stream = stream_of(["hel", "lo wor", "ld"], stop=stop, include_stop=include_stop, min_tokens=min_tokens)
    hits = []
    for token in range(3):
        hits.append(stream.push(token))
        if hits[-1] is not None:
            break
    assert hits[-1] == found
    assert stream.text == text


def test_lengths_stay_what_they_were_when_a_stop_cuts_the_text() -> None:
    stream = stream_of(["ab", "c", "d", "ef"], stop=("cde",))
    assert [stream.push(token) for token in range(4)] == [None, None, None, "cde"]
    assert stream.lengths == [2, 3, 4, 6]
    assert stream.take() == "ab"


def test_nothing_is_held_back_without_a_reason() -> None:
    for options in ({}, {"stop": ("bc",), "include_stop": True}):
        stream = stream_of(["ab"], **options)
        stream.push(0)
        assert stream.take() == "ab"
        assert stream.take() == ""


def test_what_is_held_back_comes_at_the_end() -> None:
    stream = stream_of(["ab"], stop=("bc",))
    stream.push(0)
    assert stream.take() == "a"
    stream.finish()
    assert stream.take() == "b"
