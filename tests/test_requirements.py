import re
from pathlib import Path
from typing import Any

import pytest

from batchspec.errors import UsageError
from batchspec.requirements import Estimate, Requirement, judge, parse_requirement, parse_requirements

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("acceptance_length>=2.1", {"quantity": "mean_acceptance_length", "sign": ">=", "bound": 2.1}),
    ("mean_acceptance_length > 2", {"quantity": "mean_acceptance_length", "sign": ">", "bound": 2.0}),
    ("acceptance_rate>=.5", {"quantity": "draft_acceptance_rate", "bound": 0.5}),
    ("draft_acceptance_rate<=0.9", {"quantity": "draft_acceptance_rate", "sign": "<="}),
    ("tokens_per_decode_step<3", {"quantity": "tokens_per_decode_step", "sign": "<"}),
    ("completion_tokens_per_step>=1", {"quantity": "completion_tokens_per_step"}),
    ("position[0]>=0.6", {"quantity": "marginal_rate", "position": 0}),
    ("conditional[12]>=0.6", {"quantity": "conditional_rate", "position": 12}),
    ("mean:acceptance_length>=2", {"weighting": "mean_over_requests"}),
    ("macro:acceptance_length>=2", {"weighting": "macro"}),
    ("pooled:position[1]>=0", {"weighting": "pooled", "position": 1}),
    ("category:code:acceptance_length>=3", {"grouping": "category", "group": "code"}),
    ("category:a:b c:mean:acceptance_rate>=0.1", {"group": "a:b c", "weighting": "mean_over_requests"}),
    ("engine:llama.cpp:acceptance_rate>=0.1", {"grouping": "engine", "group": "llama.cpp"}),
    ("file:logs/a=b.jsonl:position[0]>=0.1", {"grouping": "file", "group": "logs/a=b.jsonl"}),
]


@pytest.mark.parametrize(("text", "expected"), GOOD)
def test_what_a_requirement_says(text: str, expected: dict[str, Any]) -> None:
    found = parse_requirement(f" {text} ")
    assert found.text == text
    assert {name: getattr(found, name) for name in expected} == expected


BAD: list[tuple[str, str]] = [
    ("", "is no requirement: write it as acceptance_length>=2.1"),
    ("acceptance_length", "is no requirement"),
    ("acceptance_length=2", "is no requirement"),
    ("acceptance_length>=two", "is no requirement"),
    ("acceptance_length>=-1", "is no requirement"),
    ("length>=2", "'length' is no quantity; choose one of acceptance_length"),
    ("acceptance_length[0]>=2", "is no quantity with a position in brackets; choose one of position, conditional"),
    ("position>=0.5", "'position' is no quantity; choose one of"),
    ("mean:position[0]>=0.5", "leave out the weighting"),
    ("category:code:macro:acceptance_length>=2", "leave out category"),
    ("label:code:acceptance_length>=2", "is no requirement"),
]


@pytest.mark.parametrize(("text", "sentence"), BAD)
def test_what_is_no_requirement(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_requirements(["acceptance_length>=1", text])
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


SIGNS = [
    (">=", 2.0, True),
    (">", 2.0, False),
    ("<=", 2.0, True),
    ("<", 2.0, False),
    (">=", 1.9, False),
    ("<", 1.9, True),
]


@pytest.mark.parametrize(("sign", "value", "holds"), SIGNS)
def test_the_value_is_held_against_the_bound(sign: str, value: float, holds: bool) -> None:
    (judgement,) = judge([parse_requirement(f"acceptance_length{sign}2")], lambda _: Estimate(value=value))
    assert judgement.holds is holds


def test_a_value_that_is_not_known_holds_nothing() -> None:
    for sign in (">=", "<="):
        (judgement,) = judge([parse_requirement(f"acceptance_length{sign}2")], lambda _: Estimate(value=None))
        assert not judgement.holds
        assert judgement.sentence() == f"requirement acceptance_length{sign}2 failed: the value is not known"


def test_a_sentence_tells_value_and_interval() -> None:
    def look_up(requirement: Requirement) -> Estimate:
        return Estimate(value=2.0, low=1.5, high=2.5) if requirement.position is None else Estimate(value=0.25)

    first, second = judge(parse_requirements(["acceptance_length>=3", "position[0]<1"]), look_up)
    assert first.sentence() == (
        "requirement acceptance_length>=3 failed: the value is 2.0000, interval 1.5000 to 2.5000"
    )
    assert second.sentence() == "requirement position[0]<1 holds: the value is 0.2500"
    assert first.document() == {
        "require": "acceptance_length>=3",
        "value": 2.0,
        "low": 1.5,
        "high": 2.5,
        "holds": False,
    }


def test_what_the_readme_requires_is_a_requirement() -> None:
    shown = re.findall(r"--require '([^']+)'", (Path(__file__).parents[1] / "README.md").read_text())
    requirements = [text for text in shown if not text.startswith("ratio:")]
    assert len(requirements) >= 3
    assert [found.text for found in parse_requirements(requirements)] == requirements
