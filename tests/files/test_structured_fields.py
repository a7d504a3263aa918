"""The grammar of the output under all its names."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.files import RowDefaults
from batchspec.request import StructuredOutput

from .feeding import batch_line, chat_line, error_of, parse

SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"enum": [None, "é"]}}}
TEXT = '{"type":"object","properties":{"b":{"type":"string"},"a":{"enum":[null,"é"]}}}'
ANY_OBJECT = StructuredOutput(json='{"type":"object"}')


def named(**more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA} | more}


def structured(**given: Any) -> dict[str, Any]:
    return {"structured_outputs": given}


ACCEPTED: list[tuple[dict[str, Any], StructuredOutput | None]] = [
    ({"response_format": {"type": "text"}}, None),
    ({"response_format": {"type": "json_object"}}, ANY_OBJECT),
    ({"response_format": named()}, StructuredOutput(json=TEXT)),
    ({"response_format": named(strict=True, description="d")}, StructuredOutput(json=TEXT)),
    ({"response_format": named(strict=False, schema=json.dumps(SCHEMA))}, StructuredOutput(json=TEXT)),
    (structured(), None),
    (structured(json=None, regex=None), None),
    (structured(json=SCHEMA), StructuredOutput(json=TEXT)),
    (structured(json=json.dumps(SCHEMA, indent=2)), StructuredOutput(json=TEXT)),
    (structured(json={}, disable_fallback=True), StructuredOutput(json="{}")),
    (structured(json={}, disable_any_whitespace=True), StructuredOutput(json="{}", any_whitespace=False)),
    (structured(json={}, disable_any_whitespace=False), StructuredOutput(json="{}")),
    (structured(json={}, whitespace_pattern=" ?"), StructuredOutput(json="{}", whitespace_pattern=" ?")),
    (structured(json={}, disable_additional_properties=False), StructuredOutput(json="{}")),
    (structured(regex=r"\d+"), StructuredOutput(regex=r"\d+")),
    (structured(choice=["b", "a", "b"]), StructuredOutput(choice=("b", "a"))),
    (structured(grammar="start: /a/"), StructuredOutput(grammar="start: /a/")),
    (structured(json_object=True), ANY_OBJECT),
    (structured(regex="a", disable_any_whitespace=True, structural_tag=None), StructuredOutput(regex="a")),
    ({"guided_json": SCHEMA}, StructuredOutput(json=TEXT)),
    ({"guided_json": TEXT, "guided_whitespace_pattern": " "}, StructuredOutput(json=TEXT, whitespace_pattern=" ")),
    ({"guided_regex": "a|b", "guided_decoding_backend": None}, StructuredOutput(regex="a|b")),
    ({"guided_choice": ["a"]}, StructuredOutput(choice=("a",))),
    ({"guided_grammar": "root ::= 'a'"}, StructuredOutput(grammar="root ::= 'a'")),
    ({"guided_json": SCHEMA, "response_format": {"type": "text"}} | structured(), StructuredOutput(json=TEXT)),
]


@pytest.mark.parametrize(("body", "expected"), ACCEPTED)
def test_what_a_constraint_becomes(body: dict[str, Any], expected: StructuredOutput | None) -> None:
    for row in (batch_line(**body), chat_line(**body), {"prompt": "Hi"} | body, {"turns": ["Hi"]} | body):
        assert parse(row).sampling.structured == expected


SHORT = "structured_outputs"
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"response_format": "json"}, "response_format", "give an object"),
    ({"response_format": {}}, "response_format.type", '"text", "json_object" or "json_schema"'),
    ({"response_format": {"type": "structural_tag"}}, "response_format.type", "structural_tag"),
    ({"response_format": {"type": ["text"]}}, "response_format.type", "the array"),
    ({"response_format": {"type": "json_object", "schema": {}}}, "response_format.schema", "not supported"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema", "null: give a JSON schema"),
    ({"response_format": {"type": "json_schema", "json_schema": 1}}, "response_format.json_schema", "an object"),
    ({"response_format": named(schema=None)}, "response_format.json_schema.schema", "a JSON schema"),
    ({"response_format": named(schema=True)}, "response_format.json_schema.schema", "a JSON schema"),
    ({"response_format": named(name=1)}, "response_format.json_schema.name", "a string"),
    ({"response_format": named(description=1)}, "response_format.json_schema.description", "a string"),
    ({"response_format": named(strict="yes")}, "response_format.json_schema.strict", "true or false"),
    ({"response_format": named(extra=1)}, "response_format.json_schema.extra", "remove it"),
    ({"structured_outputs": "a"}, SHORT, "give an object"),
    (structured(json=True), f"{SHORT}.json", "the boolean true"),
    (structured(json="true"), f"{SHORT}.json", "a JSON schema"),
    (structured(json="{"), f"{SHORT}.json", 'the string "{"'),
    (structured(json=[]), f"{SHORT}.json", "a JSON schema"),
    (structured(regex=1), f"{SHORT}.regex", "a string"),
    (structured(regex=""), f"{SHORT}.regex", "an empty string"),
    (structured(grammar=""), f"{SHORT}.grammar", "an empty string"),
    (structured(choice=[]), f"{SHORT}.choice", "at least one string"),
    (structured(choice="a"), f"{SHORT}.choice", "an array of strings"),
    (structured(choice=["a", ""]), f"{SHORT}.choice[1]", "an empty string"),
    (structured(json_object=False), f"{SHORT}.json_object", "give true"),
    (structured(json_object={}), f"{SHORT}.json_object", "give true"),
    (structured(structural_tag="{}"), f"{SHORT}.structural_tag", "remove it"),
    (structured(regexp="a"), f"{SHORT}.regexp", "remove it"),
    (structured(disable_any_whitespace=True), SHORT, "without a constraint"),
    (structured(json={}, disable_any_whitespace=1), f"{SHORT}.disable_any_whitespace", "true or false"),
    (structured(json={}, disable_fallback=1), f"{SHORT}.disable_fallback", "true or false"),
    (structured(json={}, disable_additional_properties=True), f"{SHORT}.disable_additional_properties", "the schema"),
    (structured(json={}, whitespace_pattern=""), f"{SHORT}.whitespace_pattern", "an empty string"),
    (structured(regex="a", whitespace_pattern=" "), f"{SHORT}.whitespace_pattern", f'give "{SHORT}.json"'),
    (
        structured(json={}, whitespace_pattern=" ", disable_any_whitespace=True),
        f"{SHORT}.whitespace_pattern",
        f'"{SHORT}.disable_any_whitespace"',
    ),
    ({"guided_json": 5}, "guided_json", "a JSON schema"),
    ({"guided_regex": []}, "guided_regex", "a string"),
    ({"guided_choice": [1]}, "guided_choice[0]", "a string"),
    ({"guided_choice": []}, "guided_choice", "at least one string"),
    ({"guided_grammar": 1}, "guided_grammar", "a string"),
    ({"guided_whitespace_pattern": " "}, "guided_whitespace_pattern", 'give "guided_json"'),
    (structured(json={}, regex="a"), f"{SHORT}.regex", f'"{SHORT}.json" and "{SHORT}.regex"'),
    ({"guided_json": {}, "guided_regex": "a"}, "guided_regex", '"guided_json" and "guided_regex"'),
    ({"response_format": named(), "guided_json": {}}, "guided_json", '"response_format" and "guided_json"'),
    ({"response_format": named()} | structured(json={}), f"{SHORT}.json", f'"response_format" and "{SHORT}.json"'),
    ({"ignore_eos": True, "guided_regex": "a"}, "ignore_eos", 'while "guided_regex" is given'),
]


@pytest.mark.parametrize(("body", "param", "words"), REFUSED)
def test_what_is_refused(body: dict[str, Any], param: str, words: str) -> None:
    for row in (batch_line(**body), chat_line(**body), {"prompt": "Hi"} | body):
        error = error_of(row)
        assert error.param == param
        assert words in error.message


def test_a_run_that_ignores_the_end_refuses_grammars_unless_the_row_does_not() -> None:
    run = RowDefaults(ignore_eos=True)
    assert error_of(batch_line(guided_regex="a"), defaults=run).param == "ignore_eos"
    assert parse(batch_line(guided_regex="a", ignore_eos=False), defaults=run).sampling.structured is not None


def test_a_schema_that_is_nested_too_deeply_is_a_sentence() -> None:
    schema: dict[str, Any] = {}
    for _ in range(400):
        schema = {"items": schema}
    assert error_of(batch_line(guided_json=schema)).param == "guided_json"
    assert error_of(batch_line(guided_json=json.dumps(schema))).param == "guided_json"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_a_schema_is_the_same_under_every_name(schema: dict[str, Any]) -> None:
    bodies: list[dict[str, Any]] = [
        {"guided_json": schema},
        {"guided_json": orjson.dumps(schema).decode()},
        structured(json=schema),
        {"response_format": named(schema=schema)},
    ]
    [text] = {parse(batch_line(**body)).sampling.structured for body in bodies}
    assert text is not None
    assert text.json is not None
    read = json.loads(text.json)
    assert read == schema
    assert list(read) == list(schema)
