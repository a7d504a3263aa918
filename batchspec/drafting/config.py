"""The keys of ``--speculative-config``, checked."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from batchspec.drafting.values import fraction, named, number, number_or_all, positive, text, truth
from batchspec.errors import UsageError

__all__ = ["METHODS", "SpeculativeConfig"]

_NGRAM = ("prompt_lookup_min", "prompt_lookup_max")
_SUFFIX = (
    "suffix_decoding_max_tree_depth",
    "suffix_decoding_max_cached_requests",
    "suffix_decoding_max_spec_factor",
    "suffix_decoding_min_token_prob",
)
_KEYS_OF: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "ngram": (*_NGRAM, "adaptive", "forced_tokens"),
    "suffix": (*_SUFFIX, "adaptive", "forced_tokens"),
    "draft_model": ("model", "adaptive", "forced_tokens"),
    "recall": ("path", *_SUFFIX, "adaptive", "forced_tokens"),
    "auto": ("path", "model", *_NGRAM, *_SUFFIX, "adaptive", "forced_tokens"),
    "forced": ("adaptive", "forced_tokens"),
}
METHODS = tuple(_KEYS_OF)
_DEFAULT_K = {"suffix": 8, "recall": 8, "auto": 8}
_COMMON = ("method", "num_speculative_tokens")


@dataclass(frozen=True, kw_only=True)
class SpeculativeConfig:
    """vLLM's keys, and some of our own. With neither lookup bound given both are 5; with one given both equal it.

    Attributes:
        method: name of the drafter.
        num_speculative_tokens: the most tokens in one draft (k).
        prompt_lookup_min: shortest suffix that the n-gram drafter looks for.
        prompt_lookup_max: longest suffix that it looks for.
        suffix_decoding_max_tree_depth: longest suffix that the suffix drafter looks for, and how far it looks on.
        suffix_decoding_max_cached_requests: requests of the job whose outputs it keeps; -1 for all, 0 for none.
        suffix_decoding_max_spec_factor: draft tokens for each token that was matched.
        suffix_decoding_min_token_prob: a draft ends before a token that followed less often than this.
        model: of the draft model, a path; None for the embedded one.
        path: of the earlier responses that are recalled.
        adaptive: draft only tokens that pay for their row, by acceptance and step times so far.
        forced_tokens: where the drafter finds nothing that the sequence's grammar allows, draft what it forces. Not one
            of vLLM's keys: with it the acceptance numbers are not vLLM's.
    """

    method: str = "ngram"
    num_speculative_tokens: int = 3
    prompt_lookup_min: int = 1
    prompt_lookup_max: int = 3
    suffix_decoding_max_tree_depth: int = 24
    suffix_decoding_max_cached_requests: int = 10_000
    suffix_decoding_max_spec_factor: float = 1.0
    suffix_decoding_min_token_prob: float = 0.1
    model: str | None = None
    path: str | None = None
    adaptive: bool = False
    forced_tokens: bool = False

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "SpeculativeConfig":
        """Return the configuration for these keys.

        Raises:
            UsageError: for a key, a type or a value that is not allowed; the message says what is.
        """
        known = [item.name for item in fields(cls)]
        for key in given:
            if key not in known:
                raise UsageError(f"--speculative-config: unknown key {key!r}; the known keys are {', '.join(known)}.")
        method = given.get("method", "ngram")
        if method not in METHODS:
            raise UsageError(f"{named('method')} {method!r} is not known; choose one of {', '.join(METHODS)}.")
        values: dict[str, Any] = {"num_speculative_tokens": _DEFAULT_K.get(method, 3)}
        values |= {key: _CHECKS[key](key, value) for key, value in given.items() if key != "method"}
        _refuse_useless(method, values)
        if method == "none":
            return cls(method="none", num_speculative_tokens=0, prompt_lookup_min=0, prompt_lookup_max=0)
        if method == "recall" and values.get("path") is None:
            raise UsageError(f"{named('path')} is needed by the method recall: give an earlier run's responses.jsonl.")
        values["adaptive"] = values.get("adaptive", method == "auto")
        values["forced_tokens"] = values.get("forced_tokens", method == "forced")
        return cls(method=method, **values | _lookup_bounds(method, values))

    @property
    def has_draft_model(self) -> bool:
        """Whether a draft model is used: in the ensemble only if one is named."""
        return self.method == "draft_model" or (self.method == "auto" and self.model is not None)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that mean something to the method."""
        return (*_COMMON, *_KEYS_OF[self.method]) if self.method != "none" else ("method",)

    def document(self) -> dict[str, Any]:
        """Return the resolved keys for the manifest: those that mean something to the method."""
        values = asdict(self)
        return {key: values[key] for key in self.keys}


def _refuse_useless(method: str, values: Mapping[str, Any]) -> None:
    """Raise UsageError for a key that the method does not heed, unless it says just that."""
    if values.get("forced_tokens") is False and method == "forced":
        raise UsageError(f"{named('forced_tokens')} cannot be false with the method forced.")
    for key, value in values.items():
        if key not in _COMMON and key not in _KEYS_OF[method] and value not in (None, False) and method != "none":
            methods = [name for name, keys in _KEYS_OF.items() if key in keys]
            raise UsageError(f"{named(key)} means nothing to the method {method}: it is for {', '.join(methods)}.")
    if values.get("forced_tokens") and method == "none":
        raise UsageError(f"{named('forced_tokens')} means nothing to the method none.")


def _lookup_bounds(method: str, values: Mapping[str, Any]) -> dict[str, int]:
    """Return both bounds: 1 and 3 in the ensemble; else 5 and 5 where neither is given; where one is, both equal it."""
    if method not in ("ngram", "auto"):
        return {"prompt_lookup_min": 0, "prompt_lookup_max": 0}
    given = [values.get(key) for key in ("prompt_lookup_min", "prompt_lookup_max")]
    known = [value for value in given if value is not None] or ([1, 3] if method == "auto" else [5])
    low, high = known[0], known[-1]
    if low > high:
        raise UsageError(f"{named('prompt_lookup_min')} is {low}, above prompt_lookup_max, which is {high}.")
    return {"prompt_lookup_min": low, "prompt_lookup_max": high}


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "num_speculative_tokens": number,
    "prompt_lookup_min": number,
    "prompt_lookup_max": number,
    "suffix_decoding_max_tree_depth": number,
    "suffix_decoding_max_cached_requests": number_or_all,
    "suffix_decoding_max_spec_factor": positive,
    "suffix_decoding_min_token_prob": fraction,
    "model": text,
    "path": text,
    "adaptive": truth,
    "forced_tokens": truth,
}
