"""What tokens stand for, one by one, and the words that must not be generated."""

import pytest
from hypothesis import given
from tokenizers import Tokenizer as Fast
from tokenizers import models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from batchspec.model.tokenizer import Tokenizer
from batchspec.request import ChatPrompt
from batchspec.testing import ByteTokenizer
from tests.text.tokenizers import TEXTS, byte_piece, embedded, pieces


@given(TEXTS)
def test_bytes_of_tokens_add_up_to_the_text(text: str) -> None:
    for tokenizer in (embedded(), ByteTokenizer()):
        assert b"".join(map(tokenizer.token_bytes, tokenizer.encode_plain(text))) == text.encode()


def test_bytes_of_every_token_of_the_embedded_tokenizer() -> None:
    tokenizer = embedded()
    assert tokenizer.token_bytes(1) == b"<|bos|>"
    for token in range(tokenizer.num_vocabulary):
        alone = tokenizer.decode([token], prompt_ids=[], skip_special_tokens=False)
        assert tokenizer.token_bytes(token).decode(errors="replace") == alone
    assert tokenizer.token_bytes(tokenizer.num_vocabulary) == tokenizer.token_bytes(-1) == b""


def test_bytes_of_pieces() -> None:
    tokenizer = pieces()
    expected = [b"</s>", b" ", b" the", b" cat", b"s", b"a", "漢".encode(), "\ufffd".encode()]
    assert [tokenizer.token_bytes(token) for token in range(8)] == expected
    assert [tokenizer.token_bytes(byte_piece(byte)) for byte in range(256)] == [bytes([byte]) for byte in range(256)]


def test_bytes_in_another_kind_of_vocabulary() -> None:
    fast = Fast(models.WordLevel({"<unk>": 0, "cat": 1}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = Tokenizer(PreTrainedTokenizerFast(tokenizer_object=fast, unk_token="<unk>"))
    assert [tokenizer.token_bytes(token) for token in range(3)] == [b"<unk>", b"cat", b""]


@pytest.mark.parametrize(
    ("word", "ways"),
    [("ab", [b"ab", b" ab"]), ("  ab ", [b"ab ", b" ab "]), ("\n", [b"\n"]), ("  ", [b"  "]), ("", [])],
)
def test_ways_to_generate_a_word(word: str, ways: list[bytes]) -> None:
    assert ByteTokenizer().encode_bad_word(word) == [tuple(way) for way in ways]
    tokenizer = embedded()
    found = [b"".join(map(tokenizer.token_bytes, ids)) for ids in tokenizer.encode_bad_word(word)]
    assert found == ways


def test_ways_that_do_not_differ_are_one() -> None:
    fast = Fast(models.WordLevel({"<unk>": 0, "cat": 1}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    assert Tokenizer(PreTrainedTokenizerFast(tokenizer_object=fast)).encode_bad_word("cat") == [(1,)]


def test_chat_of_bytes() -> None:
    tokenizer = ByteTokenizer()
    messages = ({"role": "user", "content": "hi"}, {"role": "assistant", "content": None})
    tools = ({"type": "function"},)
    chat = ChatPrompt(messages=messages, tools=tools, continue_final_message=True)
    assert bytes(tokenizer.encode(chat)) == b'[{"type": "function"}]\nuser: hi\nassistant: '


def test_special_tokens_are_shown_when_asked_for() -> None:
    assert ByteTokenizer().decode([97, 256], prompt_ids=[], skip_special_tokens=False) == "a<eos>"
    tokenizer = embedded()
    assert tokenizer.decode([*tokenizer.encode_plain("a"), 2], prompt_ids=[]) == "a"
    assert tokenizer.decode([2], prompt_ids=[], skip_special_tokens=False) == "<|end|>"
