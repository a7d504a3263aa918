"""Grammars that would take minutes or all memory: refused within seconds, by a sentence, and what follows is served."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from llguidance import LLMatcher

from batchspec.errors import RequestError
from batchspec.grammar import GrammarCompiler, byte_tokenizer
from batchspec.grammar.source import source_of
from batchspec.grammar.trial import Trial, is_doubtful
from batchspec.params import StructuredOutput

DOUBLING = "start: A0\n" + "".join(f"A{i}: A{i + 1} A{i + 1}\n" for i in range(40)) + 'A40: "x"'


@pytest.fixture
def compiler() -> Iterator[GrammarCompiler]:
    one = GrammarCompiler(byte_tokenizer, trial=Trial(compile_seconds=1.0))
    yield one
    one.close()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"regex": "(a{1000}){1000}"}, "regular expression cannot be enforced: it takes .* s to find the tokens"),
        ({"grammar": "start: /((ab){1000}){1000}/"}, "grammar cannot be enforced: it takes .* s to find the tokens"),
        ({"json": {"type": "integer", "multipleOf": 999983}}, "takes more than 1 s to compile; make it smaller"),
        ({"grammar": DOUBLING}, "too big|takes more than 1 s"),
        ({"json": {"maximum": 10**300}}, "not JSON serializable: 1000"),
        ({"grammar": "start: " + "(" * 3000 + '"a"' + ")" * 3000}, "too deeply nested"),
    ],
)
def test_a_grammar_beyond_all_measure_is_refused_in_seconds(
    compiler: GrammarCompiler, given: dict[str, Any], words: str
) -> None:
    if "json" in given:
        given = {"json": json.dumps(given["json"])}
    began = time.process_time()
    with pytest.raises(RequestError, match=words) as caught:
        compiler.compile(StructuredOutput(**given))
    assert len(caught.value.message) < 300
    assert "\n" not in caught.value.message
    assert time.process_time() - began < 2.5  # of this process, which must not do the work itself
    assert compiler.compile(StructuredOutput(regex="a{10}(b|c){20}")).error is None


def test_memory_is_bounded() -> None:
    trial = Trial(memory_bytes=200 * 2**20)
    with pytest.raises(ValueError, match="takes more than 200 MiB to compile, or cannot be compiled"):
        trial.check(source_of(StructuredOutput(regex="(a{1000}){900}")))
    trial.check(source_of(StructuredOutput(regex="a{30}")))
    trial.close()
    trial.close()


def test_a_process_that_was_ended_is_started_again() -> None:
    trial = Trial()
    trial.check(LLMatcher.grammar_from_regex("a"))
    process = trial._process
    assert process is not None
    process.kill()
    process.wait()
    with pytest.raises(ValueError, match="cannot be compiled"):
        trial.check(LLMatcher.grammar_from_regex("a"))
    trial.check(LLMatcher.grammar_from_regex("a"))
    trial.close()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"regex": "[a-z]{1,100}@[a-z]{1,10}"}, False),
        ({"regex": "([a-z]{1,100} ){30}"}, True),
        ({"grammar": 'start: ("a" ~ 1..50) ("b" ~ 20)'}, False),
        ({"grammar": 'start: ("a" ~ 1..50) ~ 50'}, True),
        ({"json": '{"type": "integer", "multipleOf": 10}'}, False),
        ({"json": '{"type": "integer", "multipleOf": 1000}'}, True),
        ({"json": '{"type": "number", "multipleOf": 0.0001}'}, True),
        ({"json": '{"type": "string", "maxLength": 100000}'}, False),
        ({"choice": tuple(f"choice number {i}" for i in range(50))}, False),
        ({"choice": tuple(f"choice number {i}" for i in range(5000))}, True),
    ],
)
def test_what_is_tried_first(given: dict[str, Any], expected: bool) -> None:
    source = source_of(StructuredOutput(**given))
    assert is_doubtful(source, is_literal="choice" in given) is expected


def test_what_panics_is_an_error_of_its_request(compiler: GrammarCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """As pyo3 raises it."""

    def panic(*_: Any, **__: Any) -> None:
        raise PanicException("index out of bounds")

    monkeypatch.setattr("batchspec.grammar.compiler.Template", panic)
    with pytest.raises(RequestError, match="regular expression cannot be enforced: index out of bounds"):
        compiler.compile(StructuredOutput(regex="a"))
