"""What a line of input asks for, after it was checked: frozen values that know nothing of models or files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["ChatPrompt", "Endpoint", "Prompt", "RejectedLine", "Request", "SamplingParams", "TextPrompt", "TokenPrompt"]


class Endpoint(StrEnum):
    """The two OpenAI endpoints a request can be addressed to."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"


@dataclass(frozen=True, kw_only=True)
class TextPrompt:
    """A completion prompt given as text; the tokenizer adds its special tokens."""

    text: str


@dataclass(frozen=True, kw_only=True)
class TokenPrompt:
    """A completion prompt given as token ids; nothing is added."""

    token_ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ChatPrompt:
    """The messages of a chat, to be rendered by the model's chat template."""

    messages: tuple[Mapping[str, Any], ...]

    def answered(self, *, answer: str, question: str) -> "ChatPrompt":
        """Return the chat continued by the assistant's answer and the user's next question."""
        more = ({"role": "assistant", "content": answer}, {"role": "user", "content": question})
        return ChatPrompt(messages=(*self.messages, *more))


Prompt = TextPrompt | TokenPrompt | ChatPrompt


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """How the tokens of one request are chosen and when they end.

    Attributes:
        max_tokens: the most tokens to emit; None means up to the context limit.
        temperature: 0 is greedy; otherwise logits are divided by it.
        top_p: keep the smallest set of tokens whose probability reaches this; 1 keeps all.
        top_k: keep this many tokens; 0 keeps all.
        min_p: drop tokens less likely than this fraction of the likeliest; 0 keeps all.
        seed: the noise stream. Same seed, prompt and parameters give the same text whatever the speculation.
        n: independent samples for each prompt.
        stop_token_ids: tokens that end the generation, besides the model's own end-of-sequence tokens.
        ignore_eos: do not end at the model's end-of-sequence tokens.
        return_token_ids: put the prompt's and the output's token ids into the record.
    """

    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int = 0
    n: int = 1
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    return_token_ids: bool = False


@dataclass(frozen=True, kw_only=True)
class Request:
    """One line of input that can be served.

    Attributes:
        index: 0-based ordinal of the line among the input's non-blank lines; records are ordered by it.
        line: 1-based line (or Parquet row) number, for messages.
        custom_id: the caller's name for the request, unique within the input.
        endpoint: which response shape to write.
        prompts: one or more prompts (a chat has exactly one).
        turns: further user messages, asked one after another once the prompt is answered.
        sampling: how tokens are chosen.
        category: travels through to the record and the per-category report.
        model: the model name that the line gave, echoed in the body; None if it gave none.
    """

    index: int
    line: int
    custom_id: str
    endpoint: Endpoint
    prompts: tuple[Prompt, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    turns: tuple[str, ...] = ()
    category: str | None = None
    model: str | None = None

    @property
    def is_reportable(self) -> bool:
        """Whether per-request acceptance metrics have a meaning: one prompt, one sample."""
        return len(self.prompts) == 1 and self.sampling.n == 1


@dataclass(frozen=True, kw_only=True)
class RejectedLine:
    """A line of input that cannot be served, with what is wrong about it.

    Attributes:
        index: as in Request.
        line: as in Request.
        custom_id: the caller's name if one could be read, else None.
        message: a sentence naming line, field, value and remedy.
        param: the field at fault, if one is.
        code: machine-readable cause.
        status_code: the HTTP status a server would have answered.
        category: as in Request, if one could be read.
    """

    index: int
    line: int
    custom_id: str | None
    message: str
    param: str | None = None
    code: str = "invalid_value"
    status_code: int = 400
    category: str | None = None


Intake = Request | RejectedLine
Messages = Sequence[Mapping[str, Any]]
