"""The prompts of an input, as the token ids that every engine is given."""

from collections.abc import Iterable
from dataclasses import dataclass

from batchspec.answer import TokenizerLike
from batchspec.errors import RequestError, UsageError
from batchspec.files import Columns, RowDefaults, open_source, read_requests
from batchspec.request import ChatPrompt, Intake, Prompt, RejectedLine, TextPrompt

__all__ = ["Prompts", "read_prompts"]


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """What is generated from.

    Attributes:
        token_ids: of each prompt.
        num_left_out: lines that are no request, or whose prompt the model cannot read.
        num_cut: prompts of which only the end is kept, so that they fit the context.
        num_plain: chats that became plain text, because the model has no chat template.
    """

    token_ids: list[list[int]]
    num_left_out: int = 0
    num_cut: int = 0
    num_plain: int = 0


def read_prompts(path: str, *, column: str | None, tokenizer: TokenizerLike, most_tokens: int) -> Prompts:
    """Return the first prompt of every line, however the line wants it answered.

    Args:
        path: of the input.
        column: that holds the prompt of a bare row; None for ``prompt``.
        tokenizer: of the model.
        most_tokens: that a prompt may have; of a longer one the end is kept.

    Raises:
        UsageError: the input cannot be read, or holds no prompt.
    """
    source = open_source(path)
    prompts = _encode(
        read_requests(source, columns=Columns(prompt=column), defaults=RowDefaults()),
        tokenizer=tokenizer,
        most_tokens=most_tokens,
    )
    if not prompts.token_ids:
        raise UsageError(f"input {path} holds no prompt that the model can read: give one that does.")
    return prompts


def _encode(lines: Iterable[Intake], *, tokenizer: TokenizerLike, most_tokens: int) -> Prompts:
    found: list[list[int]] = []
    num_left_out = num_cut = num_plain = 0
    for line in lines:
        if isinstance(line, RejectedLine):
            num_left_out += 1
            continue
        prompt = line.prompts[0]
        try:
            token_ids = _try_encode(tokenizer, prompt)
            if token_ids is None:
                token_ids = tokenizer.encode(_plain(prompt))
                num_plain += 1
        except RequestError:
            num_left_out += 1
            continue
        num_cut += len(token_ids) > most_tokens
        if token_ids:
            found.append(token_ids[-most_tokens:])
    return Prompts(token_ids=found, num_left_out=num_left_out, num_cut=num_cut, num_plain=num_plain)


def _try_encode(tokenizer: TokenizerLike, prompt: Prompt) -> list[int] | None:
    """Return the prompt's tokens; None for a chat that the model has no template for."""
    try:
        return tokenizer.encode(prompt)
    except RequestError as error:
        if error.code != "unsupported_model":
            raise
        return None


def _plain(prompt: Prompt) -> TextPrompt:
    messages = prompt.messages if isinstance(prompt, ChatPrompt) else ()
    return TextPrompt(text="\n".join(str(message.get("content") or "") for message in messages))
