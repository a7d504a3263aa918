"""The grammar of the output, under any of its names: response_format, structured_outputs, guided_json and its kin."""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.fields import flag, object_, only, text, wrong
from batchspec.files.grammar_fields import ANY_OBJECT, KINDS, parse_constraints, schema_text
from batchspec.files.wording import describe
from batchspec.request import StructuredOutput

__all__ = ["parse_structured"]

_OPTIONS = ("disable_any_whitespace", "whitespace_pattern", "disable_fallback", "disable_additional_properties")
_GUIDED = ("json", "regex", "choice", "grammar", "whitespace_pattern")


def parse_structured(fields: Mapping[str, Any], *, ignore_eos: bool) -> StructuredOutput | None:
    """Return the grammar of the output, None for none.

    Raises:
        RequestError: a constraint is malformed, there are two of them, or the end of the output, which is all that can
            follow a finished grammar, is to be ignored.
    """
    guided = {name: fields[f"guided_{name}"] for name in _GUIDED if fields.get(f"guided_{name}") is not None}
    found = _response_format(fields) | _structured_outputs(fields) | parse_constraints(guided, prefix="guided_")
    if len(found) > 1:
        one, other = list(found)[:2]
        raise RequestError(f'"{one}" and "{other}" both constrain the output: give one of them', param=other)
    for name in found:
        if ignore_eos:
            raise RequestError(
                f'"ignore_eos" is true while "{name}" is given, and only the end can follow what a grammar has'
                " finished: leave one of them out",
                param="ignore_eos",
            )
    return next(iter(found.values()), None)


def _response_format(fields: Mapping[str, Any]) -> dict[str, StructuredOutput]:
    """Return OpenAI's constraint by its field's name, nothing for plain text."""
    prefix = "response_format."
    given = object_(fields, "response_format")
    if given is None:
        return {}
    kind = given.get("type")
    if kind not in ("text", "json_object", "json_schema"):
        code = "unsupported_parameter" if isinstance(kind, str) else "invalid_type"
        raise wrong(f"{prefix}type", kind, '"text", "json_object" or "json_schema"', code=code)
    only(given, ("type", "json_schema") if kind == "json_schema" else ("type",), prefix=prefix)
    if kind == "text":
        return {}
    return {"response_format": _named_schema(given) if kind == "json_schema" else ANY_OBJECT}


def _named_schema(given: Mapping[str, Any]) -> StructuredOutput:
    """Return the constraint that an OpenAI ``json_schema`` makes; its name and its description change nothing."""
    prefix = "response_format.json_schema."
    named = object_(given, "json_schema", prefix="response_format.") or {}
    only(named, ("name", "description", "schema", "strict"), prefix=prefix)
    text(named, "name", prefix=prefix)
    text(named, "description", prefix=prefix)
    flag(named, "strict", prefix=prefix)
    return StructuredOutput(json=schema_text(named.get("schema"), name=f"{prefix}schema"))


def _structured_outputs(fields: Mapping[str, Any]) -> dict[str, StructuredOutput]:
    """Return vLLM's constraints by their paths."""
    prefix = "structured_outputs."
    given = object_(fields, "structured_outputs") or {}
    given = {name: value for name, value in given.items() if value is not None}
    only(given, (*KINDS, *_OPTIONS), prefix=prefix)
    flag(given, "disable_fallback", prefix=prefix)  # There is one grammar engine, and nothing to fall back to.
    if flag(given, "disable_additional_properties", prefix=prefix):
        raise RequestError(
            f'"{prefix}disable_additional_properties" is not supported yet (found true): put "additionalProperties"'
            " false into the schema",
            param=f"{prefix}disable_additional_properties",
            code="unsupported_parameter",
        )
    found = parse_constraints(given, prefix=prefix)
    if given and not found:
        raise RequestError(
            f'"structured_outputs" is {describe(given)}, without a constraint: give one of {", ".join(KINDS)}',
            param="structured_outputs",
        )
    return found
