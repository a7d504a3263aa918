"""What a draft model would have drafted before every token, from its own choice in the place of each."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from batchspec.errors import UsageError
from batchspec.files.wording import shown
from batchspec.params import SamplingParams
from batchspec.replay.lookups import Lookups
from batchspec.replay.recorded import Recorded

__all__ = ["Chooser", "find_agreement", "sampling_from"]

_GREEDY = SamplingParams(temperature=0.0)
_NUMBER = (int, float)
_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty"), _NUMBER),
    **dict.fromkeys(("top_k", "seed", "min_tokens"), int),
    **dict.fromkeys(("stop_token_ids", "bad_words", "allowed_token_ids"), list),
    "repetition_penalty": _NUMBER,
    "ignore_eos": bool,
    "logit_bias": dict,
}
"""The parameters that have a say in which token is chosen, with the types that their values have in JSON."""
_ITEMS = {"stop_token_ids": int, "bad_words": str, "allowed_token_ids": int}


class Chooser(Protocol):
    """A draft model that reads whole texts; see ``batchspec.teacher``."""

    @property
    def context_length(self) -> int:
        """The most tokens that it can read."""

    def choices(
        self, prompt: NDArray[np.int64], text: NDArray[np.int64], *, sampling: SamplingParams, sample_index: int
    ) -> NDArray[np.int64]:
        """Return its choice in the place of each token of a text, int64 (len(text),); -1 for none."""


def find_agreement(one: Recorded, chooser: Chooser, *, most: int) -> Lookups:
    """Return how long a draft could be before each output token, and how far it agrees with what was written.

    Args:
        one: the output.
        chooser: the draft model.
        most: tokens that a draft may have.
    """
    text = np.concatenate([one.output, one.cut])
    sampling = sampling_from(one.sampling)
    choices = chooser.choices(one.prompt, text, sampling=sampling, sample_index=one.sample_index)
    places = np.arange(len(one.output))
    differing = np.append(np.flatnonzero(choices != text), len(text))
    agreed = differing[np.searchsorted(differing, places)] - places
    room = chooser.context_length + 1 - len(one.prompt) - places
    return np.clip(room, 0, most).astype(np.int32), np.minimum(agreed, most).astype(np.int32)


def sampling_from(document: Mapping[str, Any] | None) -> SamplingParams:
    """Return the parameters that a record of ours tells under ``sampling``; greedy ones for those of other engines.

    Raises:
        UsageError: a value is not of the type that a run writes.
    """
    if document is None:
        return _GREEDY
    values = {name: _value(name, value) for name, value in document.items() if name in _KINDS}
    return SamplingParams(**values)


def _value(name: str, value: Any) -> Any:
    if not isinstance(value, _KINDS[name]) or isinstance(value, bool) is not (_KINDS[name] is bool):
        raise _damaged(name, value)
    if isinstance(value, list) and all(type(item) is _ITEMS[name] for item in value):
        return tuple(value)
    if isinstance(value, dict) and all(_is_bias(*item) for item in value.items()):
        return tuple((int(token_id), float(number)) for token_id, number in value.items())
    if isinstance(value, list | dict):
        raise _damaged(name, value)
    return value


def _is_bias(token_id: str, number: Any) -> bool:
    return token_id.isascii() and token_id.isdigit() and type(number) in _NUMBER


def _damaged(name: str, value: Any) -> UsageError:
    return UsageError(f'"sampling" of a record says that {name} is {shown(value)}: leave records as they are')
