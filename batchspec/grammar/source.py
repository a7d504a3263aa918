"""From a request's structured output to the text that llguidance compiles.

Every construction names its kind explicitly, so that a text cannot be taken for a grammar of another kind.
"""

import json
import re
from typing import TYPE_CHECKING, Any

from batchspec.params import StructuredOutput

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

__all__ = ["source_of"]


def source_of(structured: StructuredOutput) -> str:
    """Return llguidance's own JSON form of the grammar.

    Raises:
        ValueError: it is malformed, or asks for what a grammar cannot promise; the message says why.
    """
    if structured.json is not None:
        return _from_schema(structured.json, structured)
    if structured.regex is not None:
        return _from_regex(structured.regex)
    if structured.choice is not None:
        return _from_regex("|".join(_literally(text) for text in structured.choice))
    return _from_lark(structured.grammar or "")


def _from_schema(text: str, structured: StructuredOutput) -> str:
    """Return the grammar of a JSON schema; keywords that it cannot enforce are refused when it is compiled."""
    from llguidance import LLMatcher

    schema = json.loads(text)
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise ValueError("a JSON schema is an object")
    _check_counts(schema)
    overrides: JsonCompileOptions = {"whitespace_flexible": structured.any_whitespace, "lenient": False}
    if structured.whitespace_pattern is not None:
        overrides["whitespace_pattern"] = structured.whitespace_pattern
    return LLMatcher.grammar_from_json_schema(schema, overrides=overrides)


def _check_counts(node: Any) -> None:
    """Refuse minProperties that optional keys would have to fill: a grammar cannot see that a key is repeated."""
    if isinstance(node, dict):
        least, required = node.get("minProperties"), node.get("required")
        num_required = len(required) if isinstance(required, list) else 0
        if isinstance(least, int) and least > max(1, num_required):
            raise ValueError(f"minProperties {least} is above the number of required properties, {num_required}")
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _check_counts(child)


def _from_regex(regex: str) -> str:
    from llguidance import LLMatcher

    return LLMatcher.grammar_from_regex(regex)


def _literally(text: str) -> str:
    """Return a regular expression for exactly this text; every character is a number, so nothing needs escaping."""
    return "".join(f"\\x{{{ord(character):X}}}" for character in text)


def _from_lark(text: str) -> str:
    from llguidance.gbnf_to_lark import gbnf_to_lark, is_lark_syntax

    if "::=" in text and not is_lark_syntax(text):
        try:
            text = gbnf_to_lark(_ESCAPE.sub(_as_character, text))
        except Exception as error:  # the converter raises bare exceptions, IndexError among them
            raise ValueError(str(error)) from error
    return json.dumps({"grammars": [{"lark_grammar": text}]})


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)", re.DOTALL)


def _as_character(match: re.Match[str]) -> str:
    """Return a Unicode escape of GBNF as what Lark reads the same way; other escapes stay."""
    digits = match[1] or match[2]
    if digits is None:
        return match[0]
    code = int(digits, 16)
    if code < 0x80:
        return f"\\x{code:02x}"
    if code > 0x10FFFF:
        raise ValueError(f"{match[0]} is not a Unicode character")
    return chr(code)
