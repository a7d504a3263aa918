"""The vocabulary of a transformers tokenizer, as llguidance reads it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from batchspec.errors import RequestError

if TYPE_CHECKING:
    from llguidance import LLTokenizer

__all__ = ["grammar_tokenizer"]


def grammar_tokenizer(tokenizer: Any, *, num_vocabulary: int, eos_ids: Iterable[int]) -> "LLTokenizer":
    """Return llguidance's tokenizer; takes seconds for a vocabulary of hundreds of thousands.

    Args:
        tokenizer: a fast transformers tokenizer.
        num_vocabulary: how many tokens may be allowed; logits behind them, which pad many models, never are.
        eos_ids: every token id that ends a generation.

    Raises:
        RequestError: llguidance cannot read this vocabulary, so structured output cannot be served.
        ImportError: llguidance is not installed.
    """
    from llguidance.hf import from_tokenizer

    try:
        return from_tokenizer(tokenizer, n_vocab=num_vocabulary, eos_token=sorted(eos_ids))
    except Exception as error:  # llguidance raises ValueError and, from Rust, bare exceptions
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise RequestError(
            f"structured output cannot be served with this model's tokenizer ({reason})",
            param="structured_outputs",
            code="unsupported_model",
        ) from error
