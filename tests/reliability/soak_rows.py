"""Rows with random parameters, and what the record of each may look like."""

import json
import random
from typing import Any

__all__ = ["faults_of_record", "soak_row"]

_LETTERS = "abcdefgh "
_OPTIONS: dict[str, list[Any]] = {
    "top_k": [1, 3, 50],
    "top_p": [0.3, 0.9],
    "min_p": [0.05],
    "presence_penalty": [0.5],
    "frequency_penalty": [-0.5, 1.0],
    "repetition_penalty": [1.2],
    "stop": ["a", ["b", "cd"], "\n"],
    "stop_token_ids": [[65, 66], [120]],
    "include_stop_str_in_output": [True],
    "min_tokens": [1],
    "ignore_eos": [True],
    "logprobs": [0, 3],
    "logit_bias": [{"97": 5}, {"98": -100}],
    "bad_words": [["a"], ["bc", "d"]],
    "allowed_token_ids": [[97, 98, 99, 100]],
    "n": [1, 2, 3],
    "stream": [True],
    "echo": [True],
    "prompt_logprobs": [1],
    "structured_outputs": [{"choice": ["ab", "abc", "x"]}],
    "truncate_prompt_tokens": [5],
    "seed": [0, 1, 2**40],
}
_WRONG = (
    ({"temperature": 7}, "invalid_value"),
    ({"logits_processor": "x"}, "unsupported_parameter"),
    ({"prompt": "a" * 200}, "context_length_exceeded"),
    ({"max_tokens": 500}, "context_length_exceeded"),
    ({"allowed_token_ids": [9999]}, "invalid_value"),
)
_OF_THE_ENGINE = {"engine_error": 500, "invalid_logits": 500, "out_of_memory": 500, "no_token_left": 400}
_AT_ODDS = ({"prompt_logprobs", "stream"}, {"structured_outputs", "ignore_eos"})  # one of these is refused


def soak_row(index: int, dice: random.Random) -> str:
    """Return the line of a request; one in twelve is wrong."""
    kind = dice.random()
    if kind < 0.01:
        return '{"custom_id": "torn'
    body: dict[str, Any] = {
        "prompt": "".join(dice.choices(_LETTERS, k=dice.randint(1, 30))),
        "max_tokens": dice.randint(1, 12),
        "temperature": dice.choice([0, 0, 0.7, 1.3]),
    }
    for name in dice.sample(sorted(_OPTIONS), k=dice.choice([0, 0, 1, 2, 3])):
        body[name] = dice.choice(_OPTIONS[name])
    row: dict[str, Any] = {"custom_id": f"r{index}", "method": "POST", "url": "/v1/completions", "body": body}
    if kind < 0.07:
        wrong, code = dice.choice(_WRONG)
        row |= {"body": {"prompt": "a", "max_tokens": 3} | wrong, "expected": code}
    elif kind < 0.08 and index:
        row |= {"custom_id": "r0", "expected": "duplicate_custom_id"}
    return json.dumps(row | ({"category": dice.choice("wxyz")} if dice.random() < 0.5 else {}))


def faults_of_record(record: dict[str, Any], row: str, *, index: int) -> list[str]:
    """Return what is wrong with the record of a row."""
    if record["id"] != f"batch_req_{index:08d}":
        return [f"row {index}: the record is {record['id']}"]
    code = None if record["error"] is None else record["error"]["code"]
    if not row.endswith("}\n"):
        return [] if code == "invalid_json_line" else [f"row {index}: {code} for a torn line"]
    given = json.loads(row)
    expected = given.get("expected")
    if expected is not None or code is not None:
        status = record["response"]["status_code"]
        is_wrong_row = code == expected or any(pair <= set(given["body"]) for pair in _AT_ODDS)
        is_right = status == (400 if is_wrong_row else _OF_THE_ENGINE.get(str(code)))
        return [] if is_right else [f"row {index}: {code} with status {status}, not {expected}"]
    return _faults_of_answer(record["response"]["body"], given["body"], index=index)


def _faults_of_answer(body: Any, asked: dict[str, Any], *, index: int) -> list[str]:
    """Return what is wrong with an answer: its choices, why they ended, and how long they are."""
    faults = []
    if isinstance(body, list):
        reasons = [choice["finish_reason"] for chunk in body for choice in chunk["choices"] if choice["finish_reason"]]
    else:
        reasons = [choice["finish_reason"] for choice in body["choices"]]
        usage = body["usage"]
        most = asked["max_tokens"] * asked.get("n", 1)
        if not len(reasons) <= usage["completion_tokens"] <= most:
            faults.append(f"row {index}: {usage['completion_tokens']} tokens, not at most {most}")
        if usage["total_tokens"] != usage["prompt_tokens"] + usage["completion_tokens"]:
            faults.append(f"row {index}: the usage does not add up")
        metrics = body["metrics"]
        if (metrics is None) != (asked.get("n", 1) > 1):
            faults.append(f"row {index}: metrics {metrics}")
    if len(reasons) != asked.get("n", 1) or not set(reasons) <= {"stop", "length"}:
        faults.append(f"row {index}: ended with {reasons}")
    return faults
