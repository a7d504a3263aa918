"""llguidance's view of a vocabulary that is a list of byte strings."""

from collections.abc import Callable
from collections.abc import Sequence as Many
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llguidance import LLTokenizer

__all__ = ["byte_tokenizer", "tokenizer_of"]


class _Vocabulary:
    """What llguidance reads from a tokenizer that is not one of Hugging Face's."""

    def __init__(
        self, *, tokens: Many[bytes], special_ids: Many[int], eos_id: int, encode: Callable[[bytes], list[int]]
    ):
        self.tokens = tokens
        self.special_token_ids = special_ids
        self.eos_token_id = eos_id
        self.bos_token_id = None
        self._encode = encode

    def __call__(self, text: bytes) -> list[int]:
        """Return the token ids of UTF-8 text."""
        return self._encode(text)


def tokenizer_of(
    tokens: Many[bytes], *, eos_ids: Many[int], encode: Callable[[bytes], list[int]], special_ids: Many[int] = ()
) -> "LLTokenizer":
    """Return llguidance's tokenizer for a vocabulary.

    Args:
        tokens: the bytes of every token id; of special tokens, their names.
        eos_ids: the tokens that end a sequence, at least one; they are special.
        encode: token ids of UTF-8 text, without special tokens.
        special_ids: further tokens that stand for no text.
    """
    from llguidance import LLTokenizer, TokenizerWrapper

    special = sorted({*eos_ids, *special_ids})
    vocabulary = _Vocabulary(tokens=tokens, special_ids=special, eos_id=eos_ids[0], encode=encode)
    return LLTokenizer(TokenizerWrapper(vocabulary), eos_token=list(eos_ids))


def byte_tokenizer(*, num_vocabulary: int = 257, eos_ids: Many[int] = (256,)) -> "LLTokenizer":
    """Return the tokenizer whose ids 0 to 255 are bytes; those above are special."""
    tokens = [bytes([byte]) for byte in range(256)] + [f"<|{i}|>".encode() for i in range(256, num_vocabulary)]
    return tokenizer_of(tokens, eos_ids=eos_ids, encode=list, special_ids=range(256, num_vocabulary))
