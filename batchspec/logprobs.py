"""Log probabilities in OpenAI's two shapes, and in vLLM's for prompts.

Shapes follow OpenAI's API reference (``logprobs`` of the chat completion object and of the completion object) and the
bodies that a vLLM server writes (``prompt_logprobs``).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from batchspec.sequence import TokenLogprobs

__all__ = ["chat_logprobs", "completion_logprobs", "prompt_logprobs_document", "token_text"]

TokenBytes = Callable[[int], bytes]

_LOWEST = -9999.0  # OpenAI's number for a very unlikely token; JSON has no minus infinity


def token_text(content: bytes) -> str:
    r"""Return a token's bytes as text; half a character is written as OpenAI's completions do, ``bytes:\xe2\x82``."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)


def chat_logprobs(entries: Sequence[TokenLogprobs], *, token_bytes: TokenBytes) -> dict[str, Any]:
    """Return the ``logprobs`` of a chat choice.

    Args:
        entries: one for each token of the output.
        token_bytes: the bytes that a token id stands for.
    """

    def named(token_id: int, logprob: float) -> dict[str, Any]:
        content = token_bytes(token_id)
        return {"token": token_text(content), "bytes": list(content), "logprob": _finite(logprob)}

    content = [
        named(entry.token_id, entry.logprob) | {"top_logprobs": [named(*likely) for likely in entry.top]}
        for entry in entries
    ]
    return {"content": content, "refusal": None}


def completion_logprobs(
    entries: Sequence[TokenLogprobs | None],
    *,
    offsets: Sequence[int],
    token_ids: Sequence[int],
    token_bytes: TokenBytes,
) -> dict[str, Any]:
    """Return the ``logprobs`` of a completion choice.

    Args:
        entries: one for each token; None for the first token of an echoed prompt. That one is given and not predicted,
            so it counts nothing in a sum: its log probability is written as 0.0 and its likely tokens as none, since
            OpenAI's type has no null here.
        offsets: where each token's text begins in the choice's text.
        token_ids: the tokens.
        token_bytes: the bytes that a token id stands for.
    """
    return {
        "text_offset": list(offsets),
        "token_logprobs": [0.0 if entry is None else _finite(entry.logprob) for entry in entries],
        "tokens": [token_text(token_bytes(token_id)) for token_id in token_ids],
        "top_logprobs": [{} if entry is None else _by_text(entry, token_bytes=token_bytes) for entry in entries],
    }


def prompt_logprobs_document(entries: Sequence[TokenLogprobs], *, token_bytes: TokenBytes) -> list[Any]:
    """Return vLLM's ``prompt_logprobs``: null for the first token, a mapping from token ids for every other.

    Args:
        entries: one for each token of the prompt but the first.
        token_bytes: the bytes that a token id stands for.
    """
    return [None] + [_by_id(entry, token_bytes=token_bytes) for entry in entries]


def _by_text(entry: TokenLogprobs, *, token_bytes: TokenBytes) -> dict[str, float]:
    """Return the likely tokens and the token itself; where two have the same text, the likelier is told."""
    found: dict[str, float] = {}
    for token_id, logprob in [*entry.top, (entry.token_id, entry.logprob)]:
        text = token_text(token_bytes(token_id))
        found[text] = max(_finite(logprob), found.get(text, _LOWEST))
    return found


def _by_id(entry: TokenLogprobs, *, token_bytes: TokenBytes) -> dict[str, Mapping[str, Any]]:
    ranks = {token_id: sum(other > logprob for _, other in entry.top) + 1 for token_id, logprob in entry.top}
    ranks[entry.token_id] = entry.rank
    likely = dict([*entry.top, (entry.token_id, entry.logprob)])
    return {
        str(token_id): {
            "logprob": _finite(logprob),
            "rank": ranks[token_id],
            "decoded_token": token_text(token_bytes(token_id)),
        }
        for token_id, logprob in likely.items()
    }


def _finite(logprob: float) -> float:
    return max(logprob, _LOWEST)
