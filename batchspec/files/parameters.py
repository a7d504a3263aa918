"""Which body fields are honoured, which are knowingly ignored, and which are refused by name."""

from typing import Any

from batchspec.request import Endpoint

__all__ = ["HONOURED", "IGNORED", "OFF_VALUES", "OF_ONE_ENDPOINT"]

HONOURED = frozenset(
    {
        "add_generation_prompt",
        "add_special_tokens",
        "allowed_token_ids",
        "bad_words",
        "chat_template_kwargs",
        "continue_final_message",
        "echo",
        "frequency_penalty",
        "guided_choice",
        "guided_grammar",
        "guided_json",
        "guided_regex",
        "guided_whitespace_pattern",
        "ignore_eos",
        "include_stop_str_in_output",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "min_p",
        "min_tokens",
        "model",
        "n",
        "presence_penalty",
        "prompt",
        "prompt_logprobs",
        "repetition_penalty",
        "response_format",
        "return_token_ids",
        "seed",
        "skip_special_tokens",
        "stop",
        "stop_token_ids",
        "stream",
        "stream_options",
        "structured_outputs",
        "temperature",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "truncate_prompt_tokens",
    }
)
# They change nothing about the text: names for a server's own books and caches.
IGNORED = frozenset(
    {
        "metadata",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)

# Parameters not honoured yet, each with the values that ask for nothing. None is always such a value.
OFF_VALUES: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "cache_salt": (),
    "chat_template": (),
    "detokenize": (True,),
    "documents": ([],),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "guided_decoding_backend": (),
    "include_reasoning": (True,),
    "kv_transfer_params": (),
    "length_penalty": (1,),
    "logits_processors": ([],),
    "media_io_kwargs": ({},),
    "mm_processor_kwargs": ({},),
    "modalities": (["text"],),
    "moderation": (),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "priority": (0,),
    "prompt_embeds": (),
    "reasoning_effort": ("none",),
    "request_id": (),
    "return_tokens_as_token_ids": (False,),
    "spaces_between_special_tokens": (True,),
    "suffix": ("",),
    "thinking_token_budget": (),
    "tool_choice": ("none", "auto"),
    "truncation_side": ("left",),
    "use_beam_search": (False,),
    "verbosity": (),
    "vllm_xargs": ({},),
    "web_search_options": (),
}

# Honoured by one endpoint only, each with the values that ask for nothing at the other.
OF_ONE_ENDPOINT: dict[Endpoint, dict[str, tuple[Any, ...]]] = {
    Endpoint.CHAT: {
        "add_generation_prompt": (True,),
        "chat_template_kwargs": ({},),
        "continue_final_message": (False,),
        "tools": ([],),
        "top_logprobs": (0,),
    },
    Endpoint.COMPLETIONS: {"echo": (False,)},
}
