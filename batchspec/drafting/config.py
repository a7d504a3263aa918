"""From the keys of ``--speculative-config`` to a drafter."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from batchspec.drafting.interface import Drafter
from batchspec.drafting.ngram import NgramDrafter
from batchspec.drafting.none import NoDrafter
from batchspec.errors import UsageError

__all__ = ["METHODS", "SpeculativeConfig", "make_drafter"]

METHODS = ("none", "ngram")
_LARGEST = 256  # no drafter gains from more tokens in a draft, and per-position counts have to be kept and shown


@dataclass(frozen=True, kw_only=True)
class SpeculativeConfig:
    """vLLM's keys. With neither lookup bound given both are 5; with one given both equal it.

    Attributes:
        method: name of the drafter.
        num_speculative_tokens: the most tokens in one draft (k).
        prompt_lookup_min: shortest suffix that the n-gram drafter looks for.
        prompt_lookup_max: longest suffix that it looks for.
    """

    method: str = "ngram"
    num_speculative_tokens: int = 3
    prompt_lookup_min: int = 1
    prompt_lookup_max: int = 3

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "SpeculativeConfig":
        """Return the configuration for vLLM's keys.

        Raises:
            UsageError: for a key, a type or a value that is not allowed; the message says what is.
        """
        known = [item.name for item in fields(cls)]
        for key in given:
            if key not in known:
                raise UsageError(f"--speculative-config: unknown key {key!r}; the known keys are {', '.join(known)}.")
        method = given.get("method", "ngram")
        if method not in METHODS:
            raise UsageError(f"{_named('method')} {method!r} is not known; choose one of {', '.join(METHODS)}.")
        if method == "none":
            return cls(method="none", num_speculative_tokens=0, prompt_lookup_min=0, prompt_lookup_max=0)
        low, high = _lookup_bounds(given.get("prompt_lookup_min"), given.get("prompt_lookup_max"))
        numbers = {"num_speculative_tokens": given.get("num_speculative_tokens", 3)}
        numbers |= {"prompt_lookup_min": low, "prompt_lookup_max": high}
        for key, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
                raise UsageError(f"{_named(key)} must be an integer from 1 to {_LARGEST}, not {value!r}.")
        if low > high:
            raise UsageError(f"{_named('prompt_lookup_min')} is {low}, above prompt_lookup_max, which is {high}.")
        return cls(method=method, **numbers)

    def document(self) -> dict[str, Any]:
        """Return the resolved keys for the manifest."""
        return {"method": "none"} if self.method == "none" else asdict(self)


def _named(key: str) -> str:
    """Return how messages name a key, which may have come from its flag or from the JSON object."""
    return f"--{key.replace('_', '-')} ({key!r} of --speculative-config)"


def _lookup_bounds(low: Any, high: Any) -> tuple[Any, Any]:
    """Return both bounds, 5 and 5 where neither is given; where one is, both equal it."""
    if low is None and high is None:
        return 5, 5
    return (high if low is None else low), (low if high is None else high)


def make_drafter(config: SpeculativeConfig) -> Drafter:
    """Return the drafter that the configuration names."""
    if config.method == "none":
        return NoDrafter()
    return NgramDrafter(
        num_spec_tokens=config.num_speculative_tokens,
        prompt_lookup_min=config.prompt_lookup_min,
        prompt_lookup_max=config.prompt_lookup_max,
    )
