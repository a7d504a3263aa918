"""Token ids that engines answer with, compared request by request."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from batchspec.engine import EngineCore
from batchspec.params import SamplingParams
from batchspec.prompt import TokenPrompt
from batchspec.request import Endpoint, Request

__all__ = ["Answer", "Comparison", "answers_of", "compare", "gap_behind"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One request's tokens.

    Attributes:
        prompt: token ids.
        tokens: token ids that followed.
    """

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two lists of answers beside each other.

    Attributes:
        num_equal: answers that are the same.
        num_answers: answers in each.
        first: of the first that is not, what is common to both, prompt included; None if all are the same.
    """

    num_equal: int
    num_answers: int
    first: tuple[int, ...] | None

    @property
    def is_equal(self) -> bool:
        """Whether all are the same."""
        return self.first is None

    def __str__(self) -> str:
        return f"{self.num_equal} of {self.num_answers} answers equal"


def answers_of(core: EngineCore, requests: Iterable[Request]) -> list[Answer]:
    """Return what an engine answers, in the order of the requests."""
    answers = []
    for record in core.run(requests):
        body: Any = record["response"]["body"]
        (choice,) = body["choices"]
        prompt = (body | choice)["prompt_token_ids"]  # of a chat in the body, of a completion in the choice
        answers.append(Answer(prompt=tuple(prompt), tokens=tuple(choice["token_ids"])))
    return answers


def compare(one: list[Answer], other: list[Answer]) -> Comparison:
    """Return how many answers are the same, and where the first is not."""
    different = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    common = (left.prompt + _common(left.tokens, right.tokens) for left, right in different)
    return Comparison(num_equal=len(one) - len(different), num_answers=len(one), first=next(common, None))


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return the leading tokens that both have."""
    pairs = zip(one, other, strict=False)
    length = next((i for i, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
    return one[:length]


def gap_behind(core: EngineCore, tokens: tuple[int, ...]) -> float:
    """Return the difference between the two largest logits behind some tokens."""
    request = Request(
        index=0,
        line=1,
        custom_id="gap",
        endpoint=Endpoint.COMPLETIONS,
        prompts=(TokenPrompt(token_ids=tokens),),
        sampling=SamplingParams(max_tokens=1, temperature=0.0, logprobs=2, ignore_eos=True),
    )
    (record,) = core.run([request])
    told: dict[str, float] = record["response"]["body"]["choices"][0]["logprobs"]["top_logprobs"][0]
    largest = sorted(told.values(), reverse=True)
    return largest[0] - largest[1]
