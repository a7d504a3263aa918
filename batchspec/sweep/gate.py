"""Requirements on a sweep, which every point that drafts has to meet."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from batchspec.errors import UsageError
from batchspec.requirements import Estimate, Judgement, Requirement, judge, parse_requirement
from batchspec.sweep.settings import SweepSettings

__all__ = ["judge_sweep", "parse_sweep_requirements"]

_TOLD = (
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "tokens_per_decode_step",
    "marginal_rate",
    "conditional_rate",
)


def parse_sweep_requirements(texts: Iterable[str], settings: SweepSettings) -> tuple[Requirement, ...]:
    """Return the requirements.

    Raises:
        UsageError: a text is no requirement, asks for what a sweep does not tell, or no point drafts.
    """
    requirements = tuple(map(_parse, texts))
    if requirements and not any(point.is_drafting for point in settings.points):
        raise UsageError(f"--require {requirements[0].text!r}: no point of the grid drafts; add a method to it")
    return requirements


def _parse(text: str) -> Requirement:
    requirement = parse_requirement(text)
    is_odd = requirement.grouping not in (None, "category") or requirement.weighting == "macro"
    if is_odd or requirement.quantity not in _TOLD:
        raise UsageError(
            f"--require {text!r} is not told by a sweep: use acceptance_length, acceptance_rate, "
            "tokens_per_decode_step, position[i] or conditional[i], also behind category:NAME: and mean:"
        )
    return requirement


def judge_sweep(requirements: Sequence[Requirement], document: Mapping[str, Any]) -> tuple[Judgement, ...]:
    """Hold every requirement against every point that drafts of what ``sweep_document`` made."""
    return tuple(_judgements(requirements, document))


def _judgements(requirements: Sequence[Requirement], document: Mapping[str, Any]) -> Iterator[Judgement]:
    for point in document["points"]:
        if point["values"]["method"] != "none":
            named = [replace(one, text=f"{one.text} ({point['point']})") for one in requirements]
            yield from judge(named, _look_up(point))


def _look_up(point: Mapping[str, Any]) -> Callable[[Requirement], Estimate]:
    def look_up(requirement: Requirement) -> Estimate:
        is_whole = requirement.group is None
        acceptance = point["acceptance"] if is_whole else point["categories"].get(requirement.group)
        if acceptance is None:
            return Estimate(value=None)
        if requirement.position is None:
            weighting = acceptance[requirement.weighting] or {}
            return Estimate(value=weighting.get(requirement.quantity))
        positions = acceptance["per_position"]
        is_known = requirement.position < len(positions)
        return Estimate(value=positions[requirement.position][requirement.quantity] if is_known else None)

    return look_up
