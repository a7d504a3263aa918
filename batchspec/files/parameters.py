"""Which body fields are honoured, which are knowingly ignored, and which are refused by name."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.wording import shown

__all__ = ["HONOURED", "IGNORED", "OFF_VALUES", "check_known", "check_unsupported"]

HONOURED = frozenset(
    {
        "ignore_eos",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "min_p",
        "model",
        "n",
        "prompt",
        "return_token_ids",
        "seed",
        "stop_token_ids",
        "temperature",
        "top_k",
        "top_p",
    }
)
IGNORED = frozenset({"metadata", "prompt_cache_key", "safety_identifier", "service_tier", "store", "user"})

# Parameters not honoured yet, each with the values that ask for nothing. None is always such a value.
OFF_VALUES: dict[str, tuple[Any, ...]] = {
    "add_generation_prompt": (True,),
    "add_special_tokens": (),
    "allowed_token_ids": ([],),
    "audio": (),
    "bad_words": ([],),
    "best_of": (1,),
    "cache_salt": (),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "continue_final_message": (False,),
    "detokenize": (True,),
    "documents": ([],),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "guided_choice": (),
    "guided_decoding_backend": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "guided_whitespace_pattern": (),
    "include_stop_str_in_output": (False,),
    "kv_transfer_params": (),
    "length_penalty": (1,),
    "logit_bias": ({},),
    "logits_processors": ([],),
    "logprobs": (False,),
    "min_tokens": (0,),
    "mm_processor_kwargs": ({},),
    "modalities": (["text"],),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "presence_penalty": (0,),
    "priority": (0,),
    "prompt_logprobs": (),
    "reasoning_effort": ("none",),
    "repetition_penalty": (1,),
    "request_id": (),
    "response_format": ({"type": "text"},),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "stop": ([],),
    "stream": (False,),
    "stream_options": (),
    "structured_outputs": ({},),
    "suffix": ("",),
    "thinking_token_budget": (),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "truncate_prompt_tokens": (),
    "use_beam_search": (False,),
    "verbosity": (),
    "web_search_options": (),
}


def check_unsupported(fields: Mapping[str, Any]) -> None:
    """Raise RequestError for the first field that asks for something that is not supported yet."""
    for name, value in fields.items():
        off_values = OFF_VALUES.get(name)
        if value is None or off_values is None or any(_is_same(value, off) for off in off_values):
            continue
        remedy = " or ".join(["remove it", *(f"give {shown(off)}" for off in off_values)])
        raise RequestError(
            f'"{name}" is not supported yet (found {shown(value)}): {remedy}', param=name, code="unsupported_parameter"
        )


def check_known(fields: Mapping[str, Any]) -> None:
    """Raise RequestError for the first field, not null, that is neither honoured, ignored nor known as unsupported."""
    for name, value in fields.items():
        if value is None or name in HONOURED or name in IGNORED or name in OFF_VALUES:
            continue
        near = get_close_matches(name, HONOURED, n=1)
        remedy = f'did you mean "{near[0]}"?' if near else "remove it"
        raise RequestError(
            f"{shown(name)} is not supported yet (found {shown(value)}): {remedy}",
            param=name,
            code="unsupported_parameter",
        )


def _is_same(value: Any, off: Any) -> bool:
    """Whether two JSON values are equal; unlike in Python, true is not 1."""
    return isinstance(value, bool) == isinstance(off, bool) and bool(value == off)
