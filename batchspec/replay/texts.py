"""The token ids in one response: our own detailed metrics, or what ``return_token_ids`` asked for."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from batchspec.files.sequences import sequences_in
from batchspec.ingest.streams import is_one_stream
from batchspec.replay.choices import Unfit, choices_of, malformed
from batchspec.replay.recorded import NOTHING, Cause, Tokens
from batchspec.replay.streams import merged

__all__ = ["Text", "some", "texts_of"]

_LARGEST_ID = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """One output with its prompt; attributes as in ``Recorded``."""

    prompt: Tokens
    output: Tokens
    cut: Tokens = field(default_factory=lambda: NOTHING)
    sample_index: int = 0
    is_retokenised: bool = False


def texts_of(body: Any, *, has_turns: bool) -> list[Text]:
    """Return every output of a response that has a token; at least one.

    Args:
        body: one object, or the chunks of a stream.
        has_turns: whether several choices of a chat are the turns of a conversation, of which a response tells only the
            first prompt.

    Raises:
        Unfit: a prompt or an output has no token ids, there is no output, or the body is not a response.
    """
    if isinstance(body, list) and not (all(isinstance(chunk, dict) for chunk in body) and is_one_stream(body)):
        malformed()
    whole = merged(body) if isinstance(body, list) else body
    sequences = sequences_in(whole)
    return some(_detailed(sequences) if sequences is not None else _returned(whole, has_turns=has_turns))


def some(texts: Iterable[Text]) -> list[Text]:
    """Return the texts that have an output; Unfit if there is none."""
    found = [text for text in texts if len(text.output)]
    if not found:
        raise Unfit(Cause.EMPTY)
    return found


def _detailed(sequences: Any) -> Iterable[Text]:
    if not isinstance(sequences, list) or not all(isinstance(sequence, dict) for sequence in sequences):
        malformed()
    for sequence in sequences:
        prompt, output, cut = (
            _token_ids(sequence.get(name)) for name in ("prompt_token_ids", "token_ids", "cut_token_ids")
        )
        if prompt is None or output is None or cut is None:
            malformed()
        yield Text(prompt=prompt, output=output, cut=cut)


def _returned(body: Any, *, has_turns: bool) -> Iterable[Text]:
    choices = choices_of(body)
    are_turns = has_turns and "message" in choices[0]
    for number, choice in enumerate(choices):
        output, prompt = _token_ids(choice.get("token_ids")), _token_ids(choice.get("prompt_token_ids"))
        if output is None:
            raise Unfit(Cause.NO_TOKEN_IDS)
        if prompt is None and are_turns and number:
            raise Unfit(Cause.TURNS)
        if prompt is None:
            prompt = _token_ids(body.get("prompt_token_ids"))
        if prompt is None:
            raise Unfit(Cause.NO_PROMPT)
        yield Text(prompt=prompt, output=output, sample_index=0 if are_turns else number)


def _token_ids(value: Any) -> Tokens | None:
    """Return a list of token ids, int64 (n,); None for null.

    Raises:
        Unfit: it is anything else.
    """
    if value is None:
        return None
    if type(value) is not list or not set(map(type, value)) <= {int}:
        malformed()
    try:
        ids = np.fromiter(value, np.int64, len(value))
    except OverflowError:
        malformed()
    if len(ids) and (ids.min() < 0 or ids.max() > _LARGEST_ID):
        malformed()
    return ids
