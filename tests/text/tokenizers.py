"""Tokenizers of the three usual kinds, and texts whose characters they split."""

from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from tokenizers import Tokenizer as Fast
from tokenizers import decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import batchspec
from batchspec.model.tokenizer import Tokenizer

PIECES = ["▁", "▁the", "▁cat", "s", "a", "漢", "\ufffd"]
TEXTS = st.text(st.sampled_from("ab .\néß漢字語👩🚀\u200d") | st.characters(codec="utf-8"), max_size=20)


@cache
def embedded() -> Tokenizer:
    """The tokenizer of the embedded model: byte-level pairs, some of them parts of characters."""
    return Tokenizer(AutoTokenizer.from_pretrained(Path(batchspec.__file__).parent / "models" / "target"))


@cache
def pieces() -> Tokenizer:
    """A tokenizer in the manner of SentencePiece: it drops the first space, and has a token for every byte.

    Ids: 0 </s> (special), 1 to 7 the pieces, 8 to 263 the bytes.
    """
    vocabulary = {"</s>": 0} | {piece: 1 + number for number, piece in enumerate(PIECES)}
    vocabulary |= {f"<0x{byte:02X}>": 1 + len(PIECES) + byte for byte in range(256)}
    fast = Fast(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    fast.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return Tokenizer(PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="</s>"))


def byte_piece(byte: int) -> int:
    """Return the id of a byte in ``pieces``."""
    return 1 + len(PIECES) + byte
