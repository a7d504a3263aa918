"""Whether a request fits the model: the length of its prompt, the token ids it names, what its parameters imply."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from batchspec.errors import RequestError
from batchspec.params import SamplingParams, StructuredOutput
from batchspec.request import Endpoint, Request
from batchspec.sequence import Grammar

__all__ = ["Grammars", "check_token_ids", "effective_sampling", "fit_prompt"]


class Grammars(Protocol):
    """Compiles structured output."""

    def compile(self, structured: StructuredOutput) -> Grammar:
        """Return a grammar at its beginning, of the caller's own; RequestError if there is none such."""


def effective_sampling(request: Request) -> SamplingParams:
    """Return the parameters that sequences run with: echoed tokens have log probabilities if the output's have."""
    sampling = request.sampling
    if not request.echo or sampling.logprobs is None:
        return sampling
    return replace(sampling, prompt_logprobs=max(sampling.logprobs, sampling.prompt_logprobs or 0))


def check_token_ids(sampling: SamplingParams, *, num_vocabulary: int) -> None:
    """Raise RequestError if a parameter names a token that the model does not have."""
    for name, token in _named_tokens(sampling):
        if token >= num_vocabulary:
            raise RequestError(
                f'"{name}" names token id {token}, which is not in the vocabulary; '
                f"give ids from 0 to {num_vocabulary - 1}",
                param=name,
            )


def _named_tokens(sampling: SamplingParams) -> Iterator[tuple[str, int]]:
    parts: dict[str, Iterable[int]] = {
        "stop_token_ids": sampling.stop_token_ids,
        "logit_bias": (token for token, _ in sampling.logit_bias),
        "allowed_token_ids": sampling.allowed_token_ids or (),
    }
    for name, tokens in parts.items():
        yield from ((name, token) for token in tokens)


def fit_prompt(ids: list[int], request: Request, *, max_model_len: int) -> list[int]:
    """Return the prompt's token ids, truncated from the left if the request asks for that.

    Raises:
        RequestError: the prompt is empty, or leaves less of the context than ``max_tokens``, or nothing.
    """
    max_tokens = request.sampling.max_tokens
    truncate = request.truncate_prompt_tokens
    if truncate is not None:
        ids = ids[-(truncate if truncate > 0 else max(1, max_model_len - (max_tokens or 1))) :]
    if not ids:
        raise RequestError("the prompt has no tokens; give at least one", param="prompt")
    if len(ids) >= max_model_len:
        raise RequestError(
            f"the prompt has {len(ids)} tokens, but the context holds {max_model_len} with at least one left for the "
            f"output; shorten it by {len(ids) - max_model_len + 1}, or raise --max-model-len if the model's context "
            "allows",
            param="messages" if request.endpoint is Endpoint.CHAT else "prompt",
            code="context_length_exceeded",
        )
    if max_tokens is not None and len(ids) + max_tokens > max_model_len:
        raise RequestError(
            f"max_tokens is {max_tokens}, but a prompt of {len(ids)} tokens leaves {max_model_len - len(ids)} of "
            f"the context of {max_model_len}; ask for at most that, or raise --max-model-len if the model's context "
            "allows",
            param="max_tokens",
            code="context_length_exceeded",
        )
    return ids
