"""One grammar by its kind: a JSON schema, a regular expression, a choice, a context-free grammar, any object."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from batchspec.errors import RequestError
from batchspec.files.fields import filled_text, flag, texts, wrong
from batchspec.files.wording import shown
from batchspec.request import StructuredOutput

__all__ = ["ANY_OBJECT", "KINDS", "parse_constraints", "schema_text"]

ANY_OBJECT = StructuredOutput(json='{"type":"object"}')
KINDS = ("json", "regex", "choice", "grammar", "json_object")
_SCHEMA = "a JSON schema, as an object or as the JSON text of one"


def parse_constraints(given: Mapping[str, Any], *, prefix: str) -> dict[str, StructuredOutput]:
    """Return the constraints among the values by their names, with the white space that JSON may have.

    Raises:
        RequestError: one is malformed, or a pattern for white space is given where there can be none.
    """
    found = {prefix + kind: _constraint(given, kind, prefix=prefix) for kind in KINDS if given.get(kind) is not None}
    pattern = filled_text(given, "whitespace_pattern", prefix=prefix)
    is_any = not flag(given, "disable_any_whitespace", prefix=prefix)
    if pattern is not None and (not is_any or all(constraint.json is None for constraint in found.values())):
        remedy = f'give "{prefix}json" beside it' if is_any else f'remove it or "{prefix}disable_any_whitespace"'
        raise RequestError(
            f'"{prefix}whitespace_pattern" is {shown(pattern)}, where no white space can be: {remedy}',
            param=f"{prefix}whitespace_pattern",
        )
    return {
        name: replace(constraint, any_whitespace=is_any, whitespace_pattern=pattern) if constraint.json else constraint
        for name, constraint in found.items()
    }


def _constraint(given: Mapping[str, Any], kind: str, *, prefix: str) -> StructuredOutput:
    """Return one constraint of one kind."""
    value, name = given[kind], prefix + kind
    if kind == "json":
        return StructuredOutput(json=schema_text(value, name=name))
    if kind == "regex":
        return StructuredOutput(regex=filled_text(given, kind, prefix=prefix))
    if kind == "grammar":
        return StructuredOutput(grammar=filled_text(given, kind, prefix=prefix))
    if kind == "choice":
        choice = texts(value, name)
        if not choice:
            raise wrong(name, value, "an array of at least one string")
        return StructuredOutput(choice=choice)
    if value is not True:
        raise wrong(name, value, "true, or leave it out", code=None if value is False else "invalid_type")
    return ANY_OBJECT


def schema_text(value: Any, *, name: str) -> str:
    """Return a JSON schema as compact JSON text.

    Raises:
        RequestError: it is neither an object nor the JSON text of one.
    """
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise wrong(name, value, _SCHEMA) from error
    if not isinstance(value, dict):
        raise wrong(name, value, _SCHEMA, code="invalid_type")
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise wrong(name, value, f"{_SCHEMA}, of JSON values that are nested less deeply") from error
