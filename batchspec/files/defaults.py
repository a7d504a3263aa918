"""What a row is sampled with where it does not say so itself: the user's word, then the model's, then OpenAI's."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from batchspec.request import SamplingParams

__all__ = ["RowDefaults", "first"]

# Field of RowDefaults: its name in a model's generation config.
_IN_GENERATION_CONFIG = {
    "max_tokens": "max_new_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
}
_OPENAI = SamplingParams()

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RowDefaults:
    """What a row that does not say otherwise is sampled with; fields as in SamplingParams, None where nobody said.

    Attributes:
        max_tokens: None leaves it to the endpoint: 16 for completions, up to the context limit for chats.
        temperature: None for OpenAI's default, like the four after it.
        run_seed: from which, with its custom_id, a row without a seed gets its own.
        ignore_eos: do not end at the model's end-of-sequence tokens.
        force_include_usage: every stream ends with its usage, whatever its ``stream_options`` say.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    run_seed: int = 0
    ignore_eos: bool = False
    force_include_usage: bool = False

    def over(self, model: Mapping[str, Any]) -> "RowDefaults":
        """Return these defaults with what is None taken from a model's generation config, else from OpenAI.

        Args:
            model: the generation config under its own names (``max_new_tokens``, ``temperature``, …); other names
                and values that are None are passed over.
        """
        settled = {
            name: first(getattr(self, name), model.get(key), last=getattr(_OPENAI, name))
            for name, key in _IN_GENERATION_CONFIG.items()
        }
        return replace(self, **settled)


def first(*values: T | None, last: T) -> T:
    """Return the first value that is not None, or else the last."""
    return next((value for value in values if value is not None), last)
