"""Schemas, regular expressions and grammars, most of them strange and some of them enormous."""

import json
from copy import deepcopy
from random import Random
from typing import Any

from batchspec.params import StructuredOutput

from .making import TEXTS, mutated, strange

__all__ = ["structured"]

_ATOMS = [
    "a",
    ".",
    "[a-z]",
    "[^\\n]",
    "\\d",
    "\\w+",
    "(?:ab|c)",
    "\\p{L}",
    "\\x{41}",
    "(?i:x)",
    "é",
    "\\b",
    "(?=a)",
    "^",
    "$",
    "\\1",
    "[",
    "(",
    ")",
    "*",
]
_TIMES = ["", "", "", "*", "+", "?", "{3}", "{1,5}", "{0,200}", "{1000}", "{50000}", "{5,2}", "{9999999999}", "*?"]
_SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1, None]}}, "required": ["a"]},
    {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1, "maxItems": 3},
    {"type": "string", "pattern": "^[a-z]{1,4}$"},
    {"type": "number", "minimum": -5, "exclusiveMaximum": 10.5, "multipleOf": 0.5},
    {"anyOf": [{"const": 1}, {"$ref": "#/$defs/x"}], "$defs": {"x": {"type": "boolean"}}},
    {"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
    {"allOf": [{"type": "object"}, {"required": ["a"]}], "additionalProperties": False},
    {"type": "string", "format": "date-time"},
    {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "minProperties": 1},
]
_NUMBERS = [0, 1, 3, -1, 1000, 10**6, 2**63, 10**40, 0.1, 999983, 1e300]
_RULES = [
    "start: a b | c",
    'start: "x" start | "y"',
    "start: start start",
    "start: A{1,3} B",
    "start: (a | b)* c?",
    "start: %json {}",
    "start: @x",
    'start: /a/i "b"i',
    "start:",
    'root ::= "a" root | [0-9]+',
]
_PARTS = [
    'a: "x"',
    "b: a a",
    "c: /[0-9]+/",
    'A: /a/ | "b"',
    "B: A A",
    "%ignore / /",
    "%import common.INT",
    "%llguidance {}",
    'd: "\\u0000"',
    "A: A",
]


def structured(dice: Random) -> StructuredOutput:
    """A structured output of some kind."""
    kind = dice.randrange(4)
    if kind == 0:
        return StructuredOutput(regex=_regex(dice, 3))
    if kind == 1:
        return StructuredOutput(json=json.dumps(_schema(dice)))
    if kind == 2:
        return StructuredOutput(choice=tuple(dict.fromkeys(dice.choice(TEXTS[2:]) for _ in range(3))))
    return StructuredOutput(grammar=_grammar(dice))


def _regex(dice: Random, depth: int) -> str:
    text = ""
    for _ in range(dice.randrange(1, 4)):
        atom = f"({_regex(dice, depth - 1)})" if depth and dice.random() < 0.5 else dice.choice(_ATOMS)
        text += atom + dice.choice(_TIMES)
    return text + ("|" + dice.choice(_ATOMS) if dice.random() < 0.2 else "")


def _schema(dice: Random) -> Any:
    def new(dice: Random) -> Any:
        kind = dice.randrange(4)
        if kind == 0:
            return deepcopy(dice.choice(_SCHEMAS))
        if kind == 1:
            return dice.choice(_NUMBERS)
        return _regex(dice, 2) if kind == 2 else strange(dice)

    return mutated(dice.choice(_SCHEMAS), dice, new=new)


def _grammar(dice: Random) -> str:
    rules = [dice.choice(_RULES), *(dice.choice(_PARTS) for _ in range(dice.randrange(5)))]
    if dice.random() < 0.3:
        rules.append(f"A: /{_regex(dice, 2)}/")
    text = "\n".join(rules)
    if dice.random() < 0.3:
        at = dice.randrange(len(text))
        text = text[:at] + dice.choice(["{", "}", '"', "/", "\\", "::=", "{1000}", "~ 1..1000", "\x00"]) + text[at:]
    return text
