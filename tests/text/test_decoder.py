"""Text comes out token by token as it does at once: whole characters, no earlier and hardly later than certain."""

from hypothesis import example, given
from hypothesis import strategies as st

from batchspec.testing import ByteTokenizer
from batchspec.text import Decoder, IncrementalDecoder, text_after

from .tokenizers import TEXTS, byte_piece, embedded, pieces

BYTES = ByteTokenizer()


def pushes(decoder: Decoder, token_ids: list[int]) -> list[str]:
    """Return what each token brings, and the rest."""
    return [decoder.push(token) for token in token_ids] + [decoder.flush()]


@given(st.lists(st.integers(0, 256), max_size=40), st.lists(st.integers(0, 256), max_size=9), st.booleans())
@example([0xF0, 0x9F, 0xFF, 0xE2, 0x82, 0x41], [], True)
@example([0xE2, 256, 0x82, 256, 256, 256, 256, 0xAC], [], True)
@example([0x82, 0xAC, 0x21], [0x41, 0xE2], True)
def test_any_bytes(token_ids: list[int], prompt_ids: list[int], skip: bool) -> None:
    parts = pushes(BYTES.decoder(prompt_ids=prompt_ids, skip_special_tokens=skip), token_ids)
    shown = b"".join(BYTES.token_bytes(token) for token in token_ids if token < 256 or not skip)
    assert "".join(parts) == shown.decode(errors="replace")
    assert "".join(parts) == BYTES.decode(token_ids, prompt_ids=prompt_ids, skip_special_tokens=skip)
    assert len(parts[-1]) <= 3


@given(st.lists(st.integers(0, 1279) | st.integers(98, 259), max_size=40), st.lists(st.integers(0, 1279), max_size=9))
def test_any_tokens_of_the_embedded_tokenizer(token_ids: list[int], prompt_ids: list[int]) -> None:
    tokenizer = embedded()
    text = "".join(pushes(tokenizer.decoder(prompt_ids=prompt_ids), token_ids))
    assert text == tokenizer.decode(token_ids, prompt_ids=prompt_ids)
    at_once = tokenizer._tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert text == at_once


@given(st.lists(st.integers(0, 263) | st.integers(0, 7), max_size=30), st.lists(st.integers(0, 263), max_size=9))
def test_any_pieces(token_ids: list[int], prompt_ids: list[int]) -> None:
    tokenizer = pieces()
    parts = pushes(tokenizer.decoder(prompt_ids=prompt_ids), token_ids)
    assert "".join(parts) == tokenizer.decode(token_ids, prompt_ids=prompt_ids)
    assert len(parts[-1]) <= 3


@given(TEXTS, TEXTS)
def test_whole_characters_only(prompt: str, text: str) -> None:
    for tokenizer in (BYTES, embedded()):
        decoder = tokenizer.decoder(prompt_ids=tokenizer.encode_plain(prompt))
        parts = pushes(decoder, tokenizer.encode_plain(text))
        assert "".join(parts) == text
        if "\ufffd" not in text:
            assert not any("\ufffd" in part for part in parts)


@given(TEXTS)
def test_whole_characters_from_byte_pieces(text: str) -> None:
    parts = pushes(pieces().decoder(prompt_ids=[5]), [byte_piece(byte) for byte in text.encode()])
    assert "".join(parts) == text
    if "\ufffd" not in text:
        assert not any("\ufffd" in part for part in parts)


def test_character_comes_with_its_last_byte() -> None:
    parts = pushes(BYTES.decoder(prompt_ids=[]), list("a漢👩".encode()))
    assert parts == ["a", "", "", "漢", "", "", "", "👩", ""]


def test_tokens_that_each_end_within_a_character() -> None:
    text = "€" * 9
    raw = text.encode()
    cuts = [raw[:1], *(raw[start : start + 3] for start in range(1, len(raw), 3))]
    decoder = IncrementalDecoder(lambda ids: b"".join(cuts[i] for i in ids).decode(errors="replace"), [])
    assert pushes(decoder, list(range(len(cuts)))) == ["", *"€" * 9, ""]


def test_text_before_an_incomplete_character_is_not_held() -> None:
    cuts = [b"ab\xe2", b"\x82\xac"]
    decoder = IncrementalDecoder(lambda ids: b"".join(cuts[i] for i in ids).decode(errors="replace"), [])
    assert pushes(decoder, [0, 1]) == ["ab", "€", ""]


def test_the_models_own_replacement_character() -> None:
    mark = [7]
    assert pushes(pieces().decoder(prompt_ids=[5]), [*mark, 5]) == ["", "\ufffda", ""]
    assert pushes(pieces().decoder(prompt_ids=[5]), mark) == ["", "\ufffd"]
    assert pushes(pieces().decoder(prompt_ids=[5]), mark * 5) == ["", "", "", "\ufffd", "\ufffd", "\ufffd" * 3]


def test_character_behind_a_broken_one() -> None:
    token_ids = [byte_piece(byte) for byte in b"\xff" + "€".encode()]
    assert pushes(pieces().decoder(prompt_ids=[5]), token_ids) == ["", "", "", "\ufffd€", ""]


def test_broken_bytes_behind_whole_characters() -> None:
    token_ids = [byte_piece(byte) for byte in "€".encode() + b"\xf0"]
    assert pushes(pieces().decoder(prompt_ids=[5]), [*token_ids, 5]) == ["", "", "€", "", "\ufffda", ""]


def test_a_character_behind_a_space_in_bytes_is_not_lost() -> None:
    """The space is a context that shows nothing, and its byte belongs to the same run as the character's."""
    tokenizer = pieces()
    ids = [byte_piece(byte) for byte in " 😀x".encode()]
    for prompt_ids in ([], [5]):
        assert "\ufffd" not in tokenizer.decode(ids, prompt_ids=prompt_ids)
        assert "".join(pushes(tokenizer.decoder(prompt_ids=prompt_ids), ids)) == tokenizer.decode(
            ids, prompt_ids=prompt_ids
        )


def test_leading_space_depends_on_the_prompt() -> None:
    tokenizer = pieces()
    assert pushes(tokenizer.decoder(prompt_ids=[]), [1, 2, 0, 3, 4]) == ["", " the", "", " cat", "s", ""]
    assert pushes(tokenizer.decoder(prompt_ids=[0]), [2, 3]) == ["the", " cat", ""]
    assert pushes(tokenizer.decoder(prompt_ids=[4]), [2, 1, 1, 4]) == [" the", " ", " ", "s", ""]


def test_window_has_a_bound() -> None:
    longest = 0

    def decode(ids: list[int]) -> str:
        nonlocal longest
        longest = max(longest, len(ids))
        return bytes(i for i in ids if i < 256).decode(errors="replace")

    for token_ids in ([0xFF] * 99, [256] * 99, [0x80, 0xE2] * 99, list(b"abc" * 99), [0xE2] + [256] * 99):
        decoder = IncrementalDecoder(decode, list(b"prompt"))
        for token in token_ids:
            decoder.push(token)
    assert longest <= 6 + 4


def test_text_after_takes_one_step_where_it_can() -> None:
    calls: list[list[int]] = []

    def decode(ids: list[int]) -> str:
        calls.append(ids)
        return bytes(ids).decode(errors="replace")

    assert text_after(decode, list("é漢".encode()), prompt_ids=[0x41]) == "é漢"
    assert len(calls) == 2
