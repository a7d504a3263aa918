"""How many tokens a response took in and gave out, wherever its engine says so."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.numbers import first_whole, whole, wholes

__all__ = ["choice_tokens", "completion_tokens", "prompt_tokens"]

_ELSEWHERE = (
    ("meta_info", ("completion_tokens",)),
    ("timings", ("predicted_n",)),
    ("stats", ("predictedTokensCount",)),
)


def prompt_tokens(body: Mapping[str, Any]) -> int | None:
    """Return the tokens of the prompt from the body's usage."""
    usage = body.get("usage")
    return whole(usage, "prompt_tokens") if type(usage) is dict else None


def completion_tokens(body: Mapping[str, Any]) -> int | None:
    """Return the tokens of all choices together, from the usage or from where the engine's own interface has them."""
    usage = body.get("usage")
    if type(usage) is dict and usage.get("completion_tokens") is not None:
        return whole(usage, "completion_tokens")
    for place, names in _ELSEWHERE:
        block = body.get(place)
        if type(block) is dict and (found := first_whole(block, names)) is not None:
            return found
    return whole(body, "new_tokens" if type(body.get("new_tokens")) is int else "tokens_predicted")


def choice_tokens(choice: Mapping[str, Any], *, of_response: int | None, num_choices: int) -> int | None:
    """Return the tokens of one choice; None where only the sum over several choices is told."""
    own = choice.get("meta_info")
    if type(own) is dict and (found := whole(own, "completion_tokens")) is not None:
        return found
    if type(choice.get("new_tokens")) is list:
        return sum(wholes(choice, "new_tokens") or ())
    return of_response if num_choices == 1 else None
