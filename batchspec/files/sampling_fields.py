"""The sampling fields of a request, with the run's defaults for those that are not given."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from batchspec.files.constraint_fields import parse_allowed_token_ids, parse_bad_words, parse_logit_bias
from batchspec.files.defaults import RowDefaults, first
from batchspec.files.fields import flag, integer, number, token_ids
from batchspec.files.length_fields import parse_max_tokens, parse_min_tokens
from batchspec.files.output_fields import parse_logprobs, parse_prompt_logprobs, parse_stop
from batchspec.files.structured_fields import parse_structured
from batchspec.request import Endpoint, SamplingParams

__all__ = ["derive_seed", "parse_sampling"]

_OPENAI = SamplingParams()


def derive_seed(*, run_seed: int, custom_id: str) -> int:
    """Return a seed in ``[0, 2^63)`` from nothing but the two, so that the order of lines does not matter."""
    digest = blake2b(f"{run_seed}:{custom_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def parse_sampling(
    fields: Mapping[str, Any], *, endpoint: Endpoint, custom_id: str, defaults: RowDefaults
) -> SamplingParams:
    """Return the sampling parameters that the fields give.

    Raises:
        RequestError: a field has a wrong type or a value out of range, or two fields contradict each other.
    """
    temperature = number(fields, "temperature", low=0, high=2)
    top_p = number(fields, "top_p", low=0, high=1, is_low_excluded=True)
    top_k = integer(fields, "top_k", low=-1, high=2**31 - 1)
    min_p = number(fields, "min_p", low=0, high=1)
    repetition = number(fields, "repetition_penalty", low=0, high=100, is_low_excluded=True)
    seed = integer(fields, "seed", low=-(2**63), high=2**63 - 1)
    stop_token_ids = fields.get("stop_token_ids")
    ignore_eos = first(flag(fields, "ignore_eos"), last=defaults.ignore_eos)
    max_tokens = parse_max_tokens(fields, endpoint=endpoint, defaults=defaults)
    return SamplingParams(
        max_tokens=max_tokens,
        min_tokens=parse_min_tokens(fields, max_tokens=max_tokens),
        temperature=first(temperature, defaults.temperature, last=_OPENAI.temperature),
        top_p=first(top_p, defaults.top_p, last=_OPENAI.top_p),
        top_k=max(0, first(top_k, defaults.top_k, last=_OPENAI.top_k)),
        min_p=first(min_p, defaults.min_p, last=_OPENAI.min_p),
        seed=derive_seed(run_seed=defaults.run_seed, custom_id=custom_id) if seed is None else seed,
        n=integer(fields, "n", low=1, high=128) or 1,
        stop=parse_stop(fields),
        include_stop_str_in_output=flag(fields, "include_stop_str_in_output") or False,
        stop_token_ids=() if stop_token_ids is None else token_ids(stop_token_ids, "stop_token_ids"),
        ignore_eos=ignore_eos,
        presence_penalty=number(fields, "presence_penalty", low=-2, high=2) or 0.0,
        frequency_penalty=number(fields, "frequency_penalty", low=-2, high=2) or 0.0,
        repetition_penalty=first(repetition, defaults.repetition_penalty, last=_OPENAI.repetition_penalty),
        logit_bias=parse_logit_bias(fields),
        bad_words=parse_bad_words(fields),
        allowed_token_ids=parse_allowed_token_ids(fields),
        structured=parse_structured(fields, ignore_eos=ignore_eos),
        logprobs=parse_logprobs(fields, endpoint=endpoint),
        prompt_logprobs=parse_prompt_logprobs(fields),
        return_token_ids=flag(fields, "return_token_ids") or False,
        skip_special_tokens=first(flag(fields, "skip_special_tokens"), last=True),
    )
