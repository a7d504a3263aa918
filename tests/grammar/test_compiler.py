"""What is compiled, what is refused and in which words, and what is remembered."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.errors import RequestError
from batchspec.grammar import GrammarCompiler, byte_tokenizer
from batchspec.params import StructuredOutput

from .driving import accepts, compiler_over_bytes

COMPILER = compiler_over_bytes()


def compiled(**structured: Any) -> Any:
    return COMPILER.compile(StructuredOutput(**structured))


def refused(**structured: Any) -> str:
    with pytest.raises(RequestError) as caught:
        compiled(**structured)
    error = caught.value
    assert (error.param, error.code, error.status_code) == ("structured_outputs", "invalid_grammar", 400)
    assert "\n" not in error.message
    assert len(error.message) < 260
    return error.message


SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]})


@pytest.mark.parametrize(
    ("options", "accepted", "rejected"),
    [
        (
            {},
            ['{"a":"x"}', '{"a": "Turin"\n}', '{ "a" :\t"x" , "b":[1, 2]}'],
            [' {"a":"x"}', '\n{"a":"x"}', '{"a":"x"}\n', '{"b":1}', '{"a":1}', '{"a":"x"'],
        ),
        ({"any_whitespace": False}, ['{"a":"x","b":1}'], ['{"a": "x"}', '{"a":"x" }']),
        ({"whitespace_pattern": "[ ]?"}, ['{"a": "x"}', '{"a":"x"}'], ['{"a":  "x"}', '{"a":\n"x"}']),
    ],
)
def test_json(options: dict[str, Any], accepted: list[str], rejected: list[str]) -> None:
    assert [text for text in accepted if not accepts(compiled(json=SCHEMA, **options), text)] == []
    assert [text for text in rejected if accepts(compiled(json=SCHEMA, **options), text)] == []


def test_json_of_any_kind() -> None:
    for schema in ("true", "{}"):
        assert all(accepts(compiled(json=schema), text) for text in ["1", "null", '"a"', '[{"a":[]}]'])


@pytest.mark.parametrize(
    ("regex", "accepted", "rejected"),
    [
        ("a|b", ["a", "b"], ["ab", ""]),
        ("^\\d{2}$", ["12"], ["1", "123", "12\n"]),
        ('a/b"\\\\', ['a/b"\\'], ["a/b"]),
        ("a\nb", ["a\nb"], ["a b"]),
        ("é+.", ["éé😀"], ["e"]),
        ("(?i)yes", ["YES", "yEs"], ["no"]),
    ],
)
def test_regex(regex: str, accepted: list[str], rejected: list[str]) -> None:
    assert all(accepts(compiled(regex=regex), text) for text in accepted)
    assert not any(accepts(compiled(regex=regex), text) for text in rejected)


choices = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), min_size=1, max_size=6, unique=True)


@settings(max_examples=200)
@given(texts=choices, other=st.text(st.characters(codec="utf-8"), max_size=6))
def test_choices_are_exact_whatever_they_are_made_of(texts: list[str], other: str) -> None:
    grammar = compiled(choice=tuple(texts))
    assert all(accepts(grammar, text) for text in texts)
    for text in [other, texts[0] + texts[-1], texts[0][:-1], texts[0] + "\n", texts[0].swapcase()]:
        assert accepts(grammar, text) == (text in texts)


@pytest.mark.parametrize(
    "text", ['"', "\\", "a|b", "x\ny", "/", "\\d", "$", "[", "{2}", "\x00", "</s>", "#", "%json {}"]
)
def test_choices_that_look_like_syntax(text: str) -> None:
    grammar = compiled(choice=(text, "other"))
    assert accepts(grammar, text)
    assert not accepts(grammar, text * 2)


def test_thousands_of_choices() -> None:
    texts = tuple(f"the choice number {i}, in words" for i in range(4000))
    grammar = compiled(choice=texts)
    assert accepts(grammar, texts[3999])
    assert not accepts(grammar, "the choice number 4000, in words")


LARK = 'start: greeting " " NAME\ngreeting: "hello" | "hi"\nNAME: /[A-Z][a-z]+/'


@pytest.mark.parametrize(
    ("grammar", "accepted", "rejected"),
    [
        (LARK, ["hello Ada", "hi Bo"], ["hello", "hi bo", "hello Ada "]),
        ('start: "x ::= " /[0-9]+/', ["x ::= 12"], ["x"]),
        ('root ::= "yes" | "no" [0-9]+', ["yes", "no7"], ["no", "yes7"]),
        ('root ::= item ("," item)*\nitem ::= [a-z]{1,2}', ["a", "ab,c"], ["", "abc", "a,"]),
        ('root ::= "\\u0041\\u00e9" "\\\\u" [\\u0061-\\u0063\\"]', ['Aé\\u"', "Aé\\ub"], ["Aé\\ud", "A"]),
    ],
)
def test_lark_and_gbnf(grammar: str, accepted: list[str], rejected: list[str]) -> None:
    assert [text for text in accepted if not accepts(compiled(grammar=grammar), text)] == []
    assert [text for text in rejected if accepts(compiled(grammar=grammar), text)] == []


@pytest.mark.parametrize(
    ("structured", "reason"),
    [
        ({"json": "{"}, "JSON schema cannot be enforced: Expecting property name"),
        ({"json": "[]"}, "a JSON schema is an object"),
        ({"json": "false"}, "a JSON schema is an object"),
        ({"json": '{"type": "strin"}'}, "Invalid type: strin"),
        ({"json": '{"type": "array", "uniqueItems": true}'}, 'Unimplemented keys: ["uniqueItems"]'),
        ({"json": '{"not": {}, "x-guidance": {"lenient": true}}'}, 'Unimplemented keys: ["not"]'),
        ({"json": '{"type": "string", "format": "shoe-size"}'}, "Unknown format: shoe-size"),
        ({"json": '{"$ref": "#/$defs/x"}'}, "Pointer '/$defs/x' does not exist"),
        ({"json": '{"$ref": "https://example.com/x"}'}, "Default retriever does not fetch resources"),
        ({"json": '{"enum": []}'}, "Unsatisfiable schema"),
        ({"json": '{"items": {"minProperties": 2}}'}, "minProperties 2 is above the number of required properties, 0"),
        ({"json": '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}'}, "it cannot be completed"),
        ({"json": '{"type": "string", "pattern": "(?=a)b"}'}, "look-around"),
        ({"json": "{}", "whitespace_pattern": "["}, "unclosed character class"),
        ({"json": '{"a": ' * 2000 + "1" + "}" * 2000}, "recursion"),
        ({"regex": "("}, "the regular expression cannot be enforced: unclosed group"),
        ({"regex": "a(?=b)"}, "look-around"),
        ({"regex": "(a)\\1"}, "backreferences are not supported"),
        ({"regex": "[^\\s\\S]"}, "it cannot be completed"),
        ({"regex": "\ud800"}, "surrogates not allowed"),
        ({"choice": ("\ud800",)}, "Unicode scalar value"),
        ({"grammar": 'start: "a'}, "the grammar cannot be enforced"),
        ({"grammar": "start: foo"}, 'unknown name: "foo"'),
        ({"grammar": "start: start"}, "it cannot be completed"),
        ({"grammar": "nonsense"}, "the grammar cannot be enforced"),
        ({"grammar": '{"grammars": [{"json_schema": {}}]}'}, "the grammar cannot be enforced"),
        ({"grammar": 'root ::= "a'}, "Unexpected end of input"),
        ({"grammar": "root ::= y"}, "Rule 'y' not found"),
        ({"grammar": 'rot ::= "a"'}, "No 'root' rule found"),
        ({"grammar": 'root ::= "\\UFFFFFFFF"'}, "is not a Unicode character"),
        ({"grammar": 'start: %json {"not": {}, "x-guidance": {"lenient": true}}'}, "Unimplemented keys"),
    ],
)
def test_what_cannot_be_enforced_is_refused(structured: dict[str, Any], reason: str) -> None:
    assert reason in refused(**structured)


def test_a_grammar_that_is_too_large_is_refused() -> None:
    names = [f"property number {i}" for i in range(60_000)]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    assert "too" in refused(json=json.dumps(schema))


def test_the_same_structured_output_compiles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted() -> Any:
        made.append("tokenizer")
        return byte_tokenizer()

    compiler = GrammarCompiler(counted, max_cached=2)

    def source(structured: StructuredOutput) -> str:
        made.append("source")
        return '{"grammars": [{"lark_grammar": "start: \\"a\\""}]}'

    monkeypatch.setattr("batchspec.grammar.compiler.source_of", source)
    for _ in range(3):
        for regex in ("a", "b"):
            compiler.compile(StructuredOutput(regex=regex))
    assert made == ["tokenizer", "source", "source"]
    compiler.compile(StructuredOutput(regex="c"))
    compiler.compile(StructuredOutput(regex="a"))
    assert made.count("source") == 4


def test_refusals_are_remembered_but_raised_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = compiler_over_bytes()
    errors = []
    for _ in range(2):
        with pytest.raises(RequestError) as caught:
            compiler.compile(StructuredOutput(regex="("))
        errors.append(caught.value)
        monkeypatch.delattr("batchspec.grammar.compiler.source_of", raising=False)
    assert errors[0] is not errors[1]
    assert errors[0].message == errors[1].message


def test_copies_do_not_share_their_place() -> None:
    one, two = compiled(regex="ab"), compiled(regex="ab")
    one.accept(ord("a"))
    assert one.num_valid([ord("b")]) == 1
    assert two.num_valid([ord("b")]) == 0


def test_without_llguidance_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(RequestError, match=r"install it with pip install 'batchspec\[grammar\]'") as caught:
        compiler_over_bytes().compile(StructuredOutput(regex="a"))
    assert caught.value.code == "unsupported_parameter"


def test_a_vocabulary_that_cannot_be_read_is_asked_for_once() -> None:
    asked = []

    def unreadable() -> Any:
        asked.append(1)
        raise RequestError("no", param="structured_outputs", code="unsupported_model")

    compiler = GrammarCompiler(unreadable)
    for regex in ("a", "b"):
        with pytest.raises(RequestError, match="no"):
            compiler.compile(StructuredOutput(regex=regex))
    assert asked == [1]
