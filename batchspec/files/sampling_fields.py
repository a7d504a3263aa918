"""The sampling fields of a request, with the run's defaults for those that are not given."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.fields import flag, integer, number, token_ids
from batchspec.request import Endpoint, SamplingParams

__all__ = ["RowDefaults", "derive_seed", "parse_sampling"]

_COMPLETIONS_MAX_TOKENS = 16


@dataclass(frozen=True, kw_only=True)
class RowDefaults:
    """What a row that does not say otherwise is sampled with; fields as in SamplingParams.

    Attributes:
        max_tokens: None leaves it to the endpoint: 16 for completions, up to the context limit for chats.
        run_seed: from which, with its custom_id, a row without a seed gets its own.
    """

    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    run_seed: int = 0
    ignore_eos: bool = False


def derive_seed(*, run_seed: int, custom_id: str) -> int:
    """Return a seed in ``[0, 2^63)`` from nothing but the two, so that the order of lines does not matter."""
    digest = blake2b(f"{run_seed}:{custom_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def parse_sampling(
    fields: Mapping[str, Any], *, endpoint: Endpoint, custom_id: str, defaults: RowDefaults
) -> SamplingParams:
    """Return the sampling parameters that the fields give.

    Raises:
        RequestError: a field has a wrong type or a value out of range.
    """
    temperature = number(fields, "temperature", low=0, high=2)
    top_p = number(fields, "top_p", low=0, high=1, is_low_excluded=True)
    top_k = integer(fields, "top_k", low=-1, high=2**31 - 1)
    min_p = number(fields, "min_p", low=0, high=1)
    seed = integer(fields, "seed", low=-(2**63), high=2**63 - 1)
    stop_token_ids = fields.get("stop_token_ids")
    ignore_eos = flag(fields, "ignore_eos")
    return SamplingParams(
        max_tokens=_max_tokens(fields, endpoint=endpoint, defaults=defaults),
        temperature=defaults.temperature if temperature is None else temperature,
        top_p=defaults.top_p if top_p is None else top_p,
        top_k=max(0, defaults.top_k if top_k is None else top_k),
        min_p=defaults.min_p if min_p is None else min_p,
        seed=derive_seed(run_seed=defaults.run_seed, custom_id=custom_id) if seed is None else seed,
        n=integer(fields, "n", low=1, high=128) or 1,
        stop_token_ids=() if stop_token_ids is None else token_ids(stop_token_ids, "stop_token_ids"),
        ignore_eos=defaults.ignore_eos if ignore_eos is None else ignore_eos,
        return_token_ids=flag(fields, "return_token_ids") or False,
    )


def _max_tokens(fields: Mapping[str, Any], *, endpoint: Endpoint, defaults: RowDefaults) -> int | None:
    """Return the most tokens to emit, from either of its two names."""
    old = integer(fields, "max_tokens", low=1)
    new = integer(fields, "max_completion_tokens", low=1)
    if new is not None and endpoint is Endpoint.COMPLETIONS:
        raise RequestError(
            f'"max_completion_tokens" ({new}) belongs to {Endpoint.CHAT}: give "max_tokens" here',
            param="max_completion_tokens",
            code="unsupported_parameter",
        )
    if old is not None and new is not None and old != new:
        raise RequestError(
            f'"max_tokens" is {old} and "max_completion_tokens" is {new}: give one of them', param="max_tokens"
        )
    given = old if new is None else new
    if given is None:
        given = defaults.max_tokens
    return _COMPLETIONS_MAX_TOKENS if given is None and endpoint is Endpoint.COMPLETIONS else given
