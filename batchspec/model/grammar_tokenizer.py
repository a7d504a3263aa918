"""The vocabulary of a transformers tokenizer, as llguidance reads it."""

import json
from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

from batchspec.errors import RequestError

if TYPE_CHECKING:
    from llguidance import LLTokenizer

__all__ = ["grammar_tokenizer"]

_NONCHARACTER = "\U0010ffff"  # stands in no text


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
    from llguidance import LLTokenizer

    try:
        backend = copy(tokenizer.backend_tokenizer)
        backend.no_padding()
        backend.no_truncation()
        text = _without_names(json.loads(backend.to_str()), eos_ids=frozenset(eos_ids))
        return LLTokenizer(text, n_vocab=num_vocabulary, eos_token=sorted(eos_ids))
    except Exception as error:  # llguidance raises ValueError and, from Rust, bare exceptions
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise RequestError(
            f"structured output cannot be served with this model's tokenizer ({reason})",
            param="structured_outputs",
            code="unsupported_model",
        ) from error


def _without_names(document: dict[str, Any], *, eos_ids: frozenset[int]) -> str:
    """Return a tokenizer's JSON in which no text spells a special token.

    Where a grammar forces text, llguidance asks for its usual tokens; the name of a special token is then text like
    any other, and must not become the token, which would end the output or be no text at all.
    """
    special = {token["id"]: token for token in document["added_tokens"] if token["special"] or token["id"] in eos_ids}
    new_names = {token["content"]: f"{_NONCHARACTER}{token_id}" for token_id, token in special.items()}
    for token in special.values():
        token["content"] = new_names[token["content"]]
    model = document["model"]
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        model["vocab"] = {new_names.get(name, name): token_id for name, token_id in vocabulary.items()}
    elif isinstance(vocabulary, list):
        model["vocab"] = [[new_names.get(name, name), score] for name, score in vocabulary]
    return json.dumps(document)
