"""What a line of input asks for, after it was checked: frozen values that know nothing of models or files."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from batchspec.params import SamplingParams, StructuredOutput
from batchspec.prompt import ChatPrompt, Prompt, TextPrompt, TokenPrompt

__all__ = [
    "ChatPrompt",
    "Endpoint",
    "Intake",
    "NotYet",
    "Prompt",
    "RejectedLine",
    "Request",
    "SamplingParams",
    "StructuredOutput",
    "TextPrompt",
    "TokenPrompt",
    "Where",
    "naming",
]


class Endpoint(StrEnum):
    """The two OpenAI endpoints a request can be addressed to."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"


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
        echo: put the prompt's text before the completion's.
        truncate_prompt_tokens: keep only this many of the prompt's last tokens, -1 for as many as the context leaves
            beside ``max_tokens``; None keeps all.
        stream: the body is the list of chunks that a server would have sent, step by step.
        include_usage: the last chunk of a stream carries usage and metrics.
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
    echo: bool = False
    truncate_prompt_tokens: int | None = None
    stream: bool = False
    include_usage: bool = False

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


class NotYet:
    """Stands in an intake where there is no line at the moment: what is being served goes on, and more may follow."""


Where = str | Callable[[int], str]
"""How messages name a line: a function of its number, or what stands before the number."""


def naming(where: Where) -> Callable[[int], str]:
    """Return the function of a line's number that names it."""
    return where if callable(where) else f"{where} {{}}".format
