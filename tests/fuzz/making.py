"""Hostile bytes, JSON and text, made with one source of chance, so that a seed or hypothesis decides everything."""

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

__all__ = ["ROWS", "STRANGE", "TEXTS", "json_text", "mutated", "spoiled", "strange"]

ESC = "\x1b]0;owned\x07\x1b[31m\u009b2J"
TEXTS = [
    "",
    " ",
    "hi",
    ESC,
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "a\nb\r\tc",
    "\x00",
    "\u202egnp.exe",
    "\u2028",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "| a | `b` [c](javascript:alert(1)) |",
    "☃ 🦉 \U0010ffff",
    "\ufeff",
    "[red]markup[/red]",
    "{{ 7 * 7 }}",
    "%s %n {0}",
    "x" * 5000,
    "a" * 64 + "\u0301" * 500,
]
STRANGE: list[Any] = [None, True, False, 0, 1, -1, 2, 16, 0.5, -0.0, 1e300, 5e-324, 2**31, 2**53 + 1, 2**63, 2**64 - 1]
STRANGE += [[], {}, [[]], [{}], [None], [True], {"": None}, [1, "a"], {"a": {"b": [0.5]}}, *TEXTS]

_CHAT = [{"role": "user", "content": "hi"}]
_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
_PARAMETERS: list[dict[str, Any]] = [
    {"max_tokens": 3, "temperature": 0},
    {"n": 2, "top_p": 0.5, "top_k": 3, "seed": 1},
    {"stop": ["a", "b"], "logprobs": 2, "echo": True},
    {"logit_bias": {"65": 1.5}, "bad_words": ["x"], "allowed_token_ids": [65, 66]},
    {"presence_penalty": 1, "frequency_penalty": -1, "repetition_penalty": 1.2},
    {"stream": True, "stream_options": {"include_usage": True}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": _SCHEMA}}},
    {"structured_outputs": {"regex": "[a-c]{1,4}"}},
    {"structured_outputs": {"grammar": 'start: "a" | "b" start'}, "max_tokens": 4},
    {"truncate_prompt_tokens": 2, "add_special_tokens": False, "return_token_ids": True},
    {"chat_template_kwargs": {"thinking": True}, "tools": [{"type": "function", "function": {"name": "f"}}]},
    {"metadata": {"a": "b"}, "user": "u", "model": "m", "service_tier": "auto"},
]
ROWS: list[dict[str, Any]] = [
    {"prompt": "hello"},
    {"prompt": ["a", "b"], "id": 7},
    {"prompt": [65, 66, 67], "category": "code"},
    {"messages": _CHAT},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "question_id": 3},
    {"turns": ["a", "b"], "category": "x"},
]
for parameters in _PARAMETERS:
    ROWS.append({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "a", **parameters}})
    chat = {"messages": _CHAT, **parameters}
    ROWS.append({"custom_id": "b", "method": "POST", "url": "/v1/chat/completions", "body": chat})


def strange(dice: Random) -> Any:
    """A value that no field expects, seldom very large or deep."""
    kind = dice.randrange(12)
    if kind == 0:
        return dice.choice([-1, 1]) * 10 ** dice.choice([18, 19, 20, 40, 400])
    if kind == 1:
        return [deepcopy(dice.choice(STRANGE)) for _ in range(dice.randrange(1, 6))]
    if kind == 2:
        return {dice.choice(TEXTS)[:50]: deepcopy(dice.choice(STRANGE)) for _ in range(dice.randrange(1, 4))}
    if kind == 3:
        return deep(dice.choice([2, 20, 300]), as_list=dice.random() < 0.5)
    return deepcopy(dice.choice(STRANGE))


def deep(levels: int, *, as_list: bool) -> Any:
    """A value within so many others."""
    value: Any = "core"
    for _ in range(levels):
        value = [value] if as_list else {"a": value}
    return value


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a value, those of its first levels first."""
    found: list[tuple[Any, Any]] = []
    level = [value]
    while level:
        new = [(one, key) for one in level if isinstance(one, dict | list) for key in _keys(one)]
        found += new
        level = [one[key] for one, key in new]
    return found


def _keys(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else list(range(len(value)))


def mutated(row: Any, dice: Random, *, new: Callable[[Random], Any] = strange) -> Any:
    """A copy with a few values replaced, removed, renamed or doubled."""
    row = json.loads(json.dumps(row))
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        found = places(row)
        if not found:
            break
        container, key = found[dice.randrange(len(found))]
        how = dice.randrange(6)
        if how == 0 and isinstance(container, dict):
            del container[key]
        elif how == 1 and isinstance(container, dict):
            container[dice.choice(TEXTS)[:50]] = container.pop(key)
        elif how == 2 and isinstance(container, list):
            container.append(container[key])
        else:
            container[key] = new(dice)
    return new(dice) if dice.randrange(30) == 0 else row


_TOKENS = ["NaN", "-Infinity", "1e999", "01", "1.", "\\ud800", "\\udc00\\ud800", '"', "}", "[", ",", ":", "null", "/*"]
_TOKENS += ["\\u0000", "'", "9" * 30, "1e-999", "\ufeff", "\x00", "tru", '{"a":1,"a":2}', "\\x41", "--1"]


def json_text(value: Any, dice: Random) -> bytes:
    """JSON text of a value, half of the time with something in it that is none."""
    text = json.dumps(value, ensure_ascii=dice.random() < 0.5)
    if dice.random() < 0.5:
        return text.encode("utf-8", "surrogatepass")
    at = dice.randrange(len(text) + 1)
    if dice.random() < 0.2 and text.startswith("{"):
        text, at = '{"id": "first", "prompt": 1, "id": "second", ' + text[1:], 0
    return (text[:at] + dice.choice(_TOKENS) + text[at + dice.randrange(3) :]).encode("utf-8", "surrogatepass")


def spoiled(data: bytes, dice: Random) -> bytes:
    """Bytes with a few of them replaced, removed, doubled or swapped."""
    out = bytearray(data)
    for _ in range(dice.choice([0, 1, 1, 2, 4])):
        at, how = dice.randrange(len(out) + 1), dice.randrange(4)
        if how == 0:
            out[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 5)))
        elif how == 1:
            del out[at : at + dice.randrange(1, 30)]
        elif how == 2 and at < len(out):
            out[at] = dice.randrange(256)
        else:
            out[at:at] = out[max(0, at - dice.randrange(1, 40)) : at]
    return bytes(out)
