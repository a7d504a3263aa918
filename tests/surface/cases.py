"""For every parameter, bodies in which it matters."""

from typing import Any

from batchspec.request import Endpoint

__all__ = ["CASES", "Case", "endpoint_of"]

Case = dict[str, Any]
PROMPT = "ab cd"
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "maximum": 99, "minimum": 0}, "b": {"enum": ["cd", "ab"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
BRIEF = {"10": -50, "32": -50, "34": 8, "44": -8, "125": 8}  # no white space, few commas, many quotes and braces
CHAT = [{"role": "user", "content": "abc"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]

# Each completes a completion body, or a chat body if it has messages.
CASES: dict[str, Case] = {
    "plain": {},
    "top_p": {"top_p": 0.7},
    "top_k": {"top_k": 3},
    "min_p": {"min_p": 0.2},
    "truncation in order": {"top_k": 8, "top_p": 0.8, "min_p": 0.1},
    "seed": {"seed": -7},
    "max_tokens 1": {"max_tokens": 1},
    "max_tokens 2": {"max_tokens": 2},
    "max_completion_tokens": {"messages": CHAT, "max_completion_tokens": 9},
    "min_tokens": {"min_tokens": 12, "stop": ["a", "\n"], "stop_token_ids": [98]},
    "n": {"n": 3},
    "stop": {"stop": "ca"},
    "several stops": {"stop": ["bd", "cac", "xyz", "b\nc", "a\ufffdab"]},
    "stop in a long character": {"stop": ["😀", "é"], "logit_bias": {str(byte): 6 for byte in "é".encode()}},
    "include_stop_str_in_output": {"stop": ["ca", "b\n"], "include_stop_str_in_output": True},
    "stop_token_ids": {"stop_token_ids": [10, 100]},
    "stop token shown": {"stop_token_ids": [10], "include_stop_str_in_output": True},
    "ignore_eos": {"ignore_eos": True},
    "special tokens shown": {"ignore_eos": True, "skip_special_tokens": False},
    "presence_penalty": {"presence_penalty": 1.9},
    "frequency_penalty": {"frequency_penalty": 1.5},
    "repetition_penalty": {"repetition_penalty": 1.8},
    "penalties": {"presence_penalty": -0.5, "frequency_penalty": 0.7, "repetition_penalty": 1.2},
    "logit_bias": {"logit_bias": {"97": 3, "98": -100, "256": -5}},
    "bad_words": {"bad_words": ["ab", "c", "d a"]},
    "allowed_token_ids": {"allowed_token_ids": [97, 98, 32, 256]},
    "logprobs": {"logprobs": 3},
    "logprobs of the token alone": {"logprobs": 0},
    "logprobs behind penalties": {"logprobs": 5, "frequency_penalty": 1.0, "top_k": 4, "logit_bias": {"97": 2}},
    "chat logprobs": {"messages": CHAT, "logprobs": True, "top_logprobs": 2},
    "prompt_logprobs": {"prompt_logprobs": 2},
    "echo": {"echo": True},
    "echo with logprobs": {"echo": True, "logprobs": 2},
    "echo with logprobs and stop": {"echo": True, "logprobs": 1, "stop": ["ab", "ca"]},
    "token ids": {"prompt": [97, 98, 99]},
    "several prompts": {"prompt": ["ab", "cd", "a b"], "logprobs": 1},
    "several token prompts": {"prompt": [[97, 98], [100]], "n": 2},
    "add_special_tokens": {"add_special_tokens": False},
    "truncate_prompt_tokens": {"truncate_prompt_tokens": 2, "logprobs": 1, "echo": True},
    "return_token_ids": {"return_token_ids": True},
    "json_object": {"messages": CHAT, "response_format": {"type": "json_object"}, "logit_bias": BRIEF},
    "json_schema": {
        "messages": CHAT,
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}},
        "logprobs": True,
        "logit_bias": BRIEF,
    },
    "structured json": {"structured_outputs": {"json": SCHEMA, "disable_any_whitespace": True}},
    "structured regex": {"structured_outputs": {"regex": "[ab]{3,9}(c|d){2}"}},
    "structured choice": {"structured_outputs": {"choice": ["abc", "abd", "é😀"]}, "logprobs": 2},
    "structured grammar": {"structured_outputs": {"grammar": 'start: ("a" | "b" "c")+ "d"'}},
    "guided_regex": {"guided_regex": "(ab|cd)+"},
    "structured with penalties": {"structured_outputs": {"regex": "[a-d ]+"}, "frequency_penalty": 1.1, "stop": ["dd"]},
    "structured samples": {"structured_outputs": {"regex": "[a-d]{2,6}"}, "n": 3},
    "tools": {"messages": CHAT, "tools": TOOLS, "tool_choice": "auto"},
    "continue_final_message": {
        "messages": [*CHAT, {"role": "assistant", "content": "ab"}],
        "continue_final_message": True,
        "add_generation_prompt": False,
    },
    "stream": {"stream": True, "stream_options": {"include_usage": True}, "logprobs": 2},
    "stream with stop": {
        "stream": True,
        "stream_options": {"include_usage": True},
        "logprobs": 1,
        "stop": ["bcd", "ab", "cac"],
    },
    "chat stream": {"messages": CHAT, "stream": True, "stream_options": {"include_usage": True}, "logprobs": True},
    "stream of samples": {"stream": True, "n": 2, "return_token_ids": True, "stream_options": {"include_usage": True}},
    "stream with echo": {"stream": True, "echo": True, "logprobs": 1},
    "ignored knowingly": {"user": "u", "metadata": {"a": "b"}, "store": True},
    "everything": {
        "top_k": 12,
        "top_p": 0.95,
        "min_p": 0.01,
        "presence_penalty": 0.3,
        "frequency_penalty": 0.3,
        "repetition_penalty": 1.1,
        "logit_bias": {"97": 1.5},
        "bad_words": ["dd"],
        "min_tokens": 4,
        "stop": ["abca"],
        "stop_token_ids": [10],
        "logprobs": 4,
        "n": 2,
    },
}


def endpoint_of(case: Case) -> Endpoint:
    """Return the endpoint that a case is for."""
    return Endpoint.CHAT if "messages" in case else Endpoint.COMPLETIONS
