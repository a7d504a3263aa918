"""Requirements on a comparison: on the new run, or on how it stands to the old one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from batchspec.compare.measures import Key, category_detail
from batchspec.errors import UsageError
from batchspec.requirements import Estimate, Judgement, Requirement, judge, parse_requirement

__all__ = ["judge_comparison", "parse_comparison_requirements", "wanted_measures"]

_RATIO = "ratio:"
_TOLD = ("mean_acceptance_length", "draft_acceptance_rate", "tokens_per_decode_step", "marginal_rate")
Gate = tuple[Requirement, bool]


def parse_comparison_requirements(texts: Iterable[str]) -> tuple[Gate, ...]:
    """Return the requirements, each with whether it is about the ratio of B over A and not about B.

    Args:
        texts: as for ``batchspec report``, over the pairs; or behind ``ratio:``.

    Raises:
        UsageError: a text is no requirement, or asks for what a comparison does not tell.
    """
    return tuple(map(_parse, texts))


def _parse(text: str) -> Gate:
    is_ratio = text.strip().startswith(_RATIO)
    requirement = parse_requirement(text.strip().removeprefix(_RATIO))
    is_odd = requirement.grouping not in (None, "category") or requirement.weighting == "macro"
    if is_odd or requirement.quantity not in _TOLD:
        raise UsageError(
            f"--require {text!r} is not told by a comparison: use acceptance_length, acceptance_rate, "
            "tokens_per_decode_step or position[i], also behind category:NAME: and ratio:"
        )
    return replace(requirement, text=text.strip()), is_ratio


def wanted_measures(gates: Iterable[Gate]) -> frozenset[Key]:
    """Return what the requirements are about."""
    return frozenset(_key(requirement) for requirement, _ in gates)


def judge_comparison(gates: Iterable[Gate], document: Mapping[str, Any]) -> tuple[Judgement, ...]:
    """Hold every requirement against what ``compare_runs`` made."""
    return tuple(
        judgement
        for requirement, is_ratio in gates
        for judgement in judge([requirement], _look_up(document, "ratio" if is_ratio else "b"))
    )


def _look_up(document: Mapping[str, Any], column: str) -> Callable[[Requirement], Estimate]:
    def look_up(requirement: Requirement) -> Estimate:
        for measure in document["measures"]:
            if (measure["name"], measure["weighting"], measure["detail"]) == _key(requirement):
                return Estimate(**measure[column])
        return Estimate(value=None)

    return look_up


def _key(requirement: Requirement) -> Key:
    """Return the key of the measure that a requirement is about."""
    detail = None if requirement.position is None else str(requirement.position)
    detail = detail if requirement.group is None else category_detail(requirement.group, detail)
    return requirement.quantity, requirement.weighting, detail
