"""From the keys of ``--speculative-config`` to a drafter."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from batchspec.drafting.forced import ForcedDrafter
from batchspec.drafting.interface import Drafter
from batchspec.drafting.ngram import NgramDrafter
from batchspec.drafting.none import NoDrafter
from batchspec.errors import UsageError

__all__ = ["METHODS", "SpeculativeConfig", "make_drafter"]

METHODS = ("none", "ngram", "forced")
_LARGEST = 256  # no drafter gains from more tokens in a draft, and per-position counts have to be kept and shown


@dataclass(frozen=True, kw_only=True)
class SpeculativeConfig:
    """vLLM's keys. With neither lookup bound given both are 5; with one given both equal it.

    Attributes:
        method: name of the drafter.
        num_speculative_tokens: the most tokens in one draft (k).
        prompt_lookup_min: shortest suffix that the n-gram drafter looks for.
        prompt_lookup_max: longest suffix that it looks for.
        forced_tokens: where the drafter finds nothing that the sequence's grammar allows, draft what it forces. Not one
            of vLLM's keys: with it the acceptance numbers are not vLLM's.
    """

    method: str = "ngram"
    num_speculative_tokens: int = 3
    prompt_lookup_min: int = 1
    prompt_lookup_max: int = 3
    forced_tokens: bool = False

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
        forced_tokens = _forced_tokens(given.get("forced_tokens", method == "forced"), method=method)
        if method == "none":
            return cls(method="none", num_speculative_tokens=0, prompt_lookup_min=0, prompt_lookup_max=0)
        k = _number("num_speculative_tokens", given.get("num_speculative_tokens", 3))
        low, high = (0, 0) if method == "forced" else _lookup_bounds(given)
        return cls(
            method=method,
            num_speculative_tokens=k,
            prompt_lookup_min=low,
            prompt_lookup_max=high,
            forced_tokens=forced_tokens,
        )

    def document(self) -> dict[str, Any]:
        """Return the resolved keys for the manifest."""
        return {"method": "none"} if self.method == "none" else asdict(self)


def _named(key: str) -> str:
    """Return how messages name a key, which may have come from its flag or from the JSON object."""
    return f"--{key.replace('_', '-')} ({key!r} of --speculative-config)"


def _forced_tokens(value: Any, *, method: str) -> bool:
    """Return whether forced tokens are drafted."""
    if not isinstance(value, bool):
        raise UsageError(f"{_named('forced_tokens')} must be true or false, not {value!r}.")
    if value == (method == "forced") or method == "ngram":
        return value
    other = "needs the method ngram or forced" if value else "cannot be false with the method forced"
    raise UsageError(f"{_named('forced_tokens')} {other}.")


def _number(key: str, value: Any) -> int:
    """Return the value of a key that must be a number of tokens."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
        raise UsageError(f"{_named(key)} must be an integer from 1 to {_LARGEST}, not {value!r}.")
    return value


def _lookup_bounds(given: Mapping[str, Any]) -> tuple[int, int]:
    """Return both bounds, 5 and 5 where neither is given; where one is, both equal it."""
    low, high = given.get("prompt_lookup_min"), given.get("prompt_lookup_max")
    if low is None and high is None:
        return 5, 5
    low = _number("prompt_lookup_min", high if low is None else low)
    high = _number("prompt_lookup_max", low if high is None else high)
    if low > high:
        raise UsageError(f"{_named('prompt_lookup_min')} is {low}, above prompt_lookup_max, which is {high}.")
    return low, high


def make_drafter(config: SpeculativeConfig) -> Drafter:
    """Return the drafter that the configuration names."""
    inner: Drafter = NoDrafter()
    if config.method == "ngram":
        inner = NgramDrafter(
            num_spec_tokens=config.num_speculative_tokens,
            prompt_lookup_min=config.prompt_lookup_min,
            prompt_lookup_max=config.prompt_lookup_max,
        )
    if not config.forced_tokens:
        return inner
    return ForcedDrafter(inner, num_spec_tokens=config.num_speculative_tokens)
