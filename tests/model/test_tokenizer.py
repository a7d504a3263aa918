"""Prompts to ids and back: characters that are split over tokens, chats that the template refuses, unknown ids."""

import pytest
from tokenizers import Tokenizer as Fast
from tokenizers import decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from batchspec.errors import RequestError
from batchspec.model.tokenizer import Tokenizer
from batchspec.request import ChatPrompt, TextPrompt, TokenPrompt

from .saved import byte_tokenizer

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer(byte_tokenizer(chat_template=TEMPLATE))


def words() -> Tokenizer:
    """A tokenizer whose words carry their leading space and lose it at the start of a text, as SentencePiece does."""
    vocabulary = {"<unk>": 0, "▁the": 1, "▁cat": 2, "▁sat": 3, "s": 4}
    fast = Fast(models.WordLevel(vocabulary, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    fast.decoder = decoders.Metaspace()
    return Tokenizer(PreTrainedTokenizerFast(tokenizer_object=fast, unk_token="<unk>"))


@pytest.mark.parametrize("text", ["", "plain", " leading and trailing ", "línea\n\tß 漢字 👩‍🚀", "\r\n\x00"])
def test_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(TextPrompt(text=text))
    assert tokenizer.decode(ids, prompt_ids=[]) == text


@pytest.mark.parametrize("cut", range(1, 7))
def test_prompt_and_answer_meet_anywhere_between_characters(tokenizer: Tokenizer, cut: int) -> None:
    text = "aé漢👩 b."
    prompt, answer = (tokenizer.encode(TextPrompt(text=part)) for part in (text[:cut], text[cut:]))
    assert tokenizer.decode(answer, prompt_ids=prompt) == text[cut:]


def test_character_that_the_output_ends_within(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TextPrompt(text="ok 👩"))
    assert tokenizer.decode(ids[:-1], prompt_ids=[]) == "ok \ufffd"


def test_character_that_the_prompt_ends_within(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TextPrompt(text="👩!"))
    text = tokenizer.decode(ids[2:], prompt_ids=ids[:2])
    assert text.endswith("!")
    assert "👩" not in text  # half of it was the prompt's


def test_leading_space_is_kept_after_a_prompt() -> None:
    tokenizer = words()
    assert tokenizer.decode([2, 3], prompt_ids=[1]) == " cat sat"
    assert tokenizer.decode([4], prompt_ids=[1, 2]) == "s"
    assert tokenizer.decode([2, 3], prompt_ids=[]) == "cat sat"


def test_special_tokens_are_left_out(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TextPrompt(text="done"))
    assert tokenizer.decode([*ids, 257], prompt_ids=[256]) == "done"


def test_chat_is_rendered_with_the_opening_of_an_answer(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(ChatPrompt(messages=({"role": "user", "content": "hi"},)))
    assert tokenizer.decode(ids, prompt_ids=[]) == "[user]hi[assistant]"


def test_chat_that_the_template_refuses(tokenizer: Tokenizer) -> None:
    with pytest.raises(RequestError, match=r"refuses these messages \(no system role\)") as caught:
        tokenizer.encode(ChatPrompt(messages=({"role": "system", "content": "hi"},)))
    assert caught.value.param == "messages"


def test_chat_without_template() -> None:
    tokenizer = Tokenizer(byte_tokenizer())
    assert not tokenizer.has_chat_template
    with pytest.raises(RequestError, match="no chat template") as caught:
        tokenizer.encode(ChatPrompt(messages=({"role": "user", "content": "hi"},)))
    assert caught.value.code == "unsupported_model"


@pytest.mark.parametrize("token", [-1, 258, 1 << 40])
def test_token_id_outside_the_vocabulary(tokenizer: Tokenizer, token: int) -> None:
    with pytest.raises(RequestError, match=f"token id {token} is not in the vocabulary; give ids from 0 to 257"):
        tokenizer.encode(TokenPrompt(token_ids=(1, token)))


def test_token_ids_pass_through(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode(TokenPrompt(token_ids=(0, 257))) == [0, 257]


def test_a_text_beyond_any_context_is_refused_before_its_tokens_are_in_memory() -> None:
    tokenizer = Tokenizer(byte_tokenizer(), most_tokens=200_000)
    assert len(tokenizer.encode(TextPrompt(text="x" * 150_000))) == 150_000
    with pytest.raises(RequestError, match=r"more than 200,000 tokens.*its text has 5,000,000 characters") as caught:
        tokenizer.encode(TextPrompt(text="x" * 5_000_000))
    assert (caught.value.param, caught.value.code) == ("prompt", "context_length_exceeded")
