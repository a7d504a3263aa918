"""Requests and log probabilities to make records of."""

from typing import Any

from batchspec.request import ChatPrompt, Endpoint, Request, SamplingParams, TextPrompt
from batchspec.sequence import TokenLogprobs
from batchspec.testing import ByteTokenizer

CREATED = 1_796_000_000
token_bytes = ByteTokenizer().token_bytes


def request(*, chat: bool, **sampling: Any) -> Request:
    prompt = ChatPrompt(messages=({"role": "user", "content": "hi"},)) if chat else TextPrompt(text="hi")
    return Request(
        index=3,
        line=4,
        custom_id="x",
        endpoint=Endpoint.CHAT if chat else Endpoint.COMPLETIONS,
        prompts=(prompt,),
        sampling=SamplingParams(**sampling),
    )


def entry(token_id: int, logprob: float, *, rank: int = 1, **top: float) -> TokenLogprobs:
    """Return log probabilities; ``top`` maps characters to theirs."""
    likely = tuple((ord(char), value) for char, value in top.items())
    return TokenLogprobs(token_id=token_id, logprob=logprob, rank=rank, top=likely)
