"""Which bytes of text each token stands for."""

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["TokenBytes"]


class TokenBytes:
    """Looks up a token's bytes in a transformers tokenizer of any of the usual kinds.

    Byte-level vocabularies write every byte as a character (GPT-2's table); SentencePiece writes a space as "▁" and
    bytes that are no piece as "<0xE2>". In both, added tokens stand for their text. Other tokenizers are asked to
    decode the token.

    Args:
        tokenizer: any ``PreTrainedTokenizerBase``.
    """

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer
        self._added = {token_id: token.content for token_id, token in tokenizer.added_tokens_decoder.items()}
        self._steps = _decoder_steps(tokenizer)

    def __call__(self, token_id: int) -> bytes:
        """Return the bytes of a token; none for an id that the tokenizer does not have."""
        if token_id in self._added:
            return str(self._added[token_id]).encode()
        token: str | None = None
        if 0 <= token_id < len(self._tokenizer):
            token = self._tokenizer.convert_ids_to_tokens(token_id)
        if token is None:
            return b""
        if "ByteLevel" in self._steps:
            return _from_byte_characters(token)
        if self._steps & {"ByteFallback", "Metaspace"}:
            return _from_piece(token)
        text: str = self._tokenizer.decode([token_id], clean_up_tokenization_spaces=False)
        return text.encode()


def _decoder_steps(tokenizer: Any) -> set[str]:
    """Return the names of the steps by which tokens become text."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and backend.decoder is not None:
        return set(_types(json.loads(backend.decoder.__getstate__())))
    is_sentencepiece = hasattr(tokenizer, "sp_model")
    return {"ByteFallback"} if is_sentencepiece else {"ByteLevel"} if hasattr(tokenizer, "byte_decoder") else set()


def _types(step: dict[str, Any]) -> Iterator[str]:
    yield step["type"]
    for inner in step.get("decoders", ()):
        yield from _types(inner)


def _byte_characters() -> dict[str, int]:
    """Return which byte each character means: itself if it can be printed in Latin-1, else one from 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + number): byte for number, byte in enumerate(others)}


_BYTES = _byte_characters()


def _from_byte_characters(token: str) -> bytes:
    return bytes(_BYTES[char] for char in token) if all(char in _BYTES for char in token) else token.encode()


def _from_piece(token: str) -> bytes:
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return bytes.fromhex(token[3:5])
    return token.replace("▁", " ").encode()
