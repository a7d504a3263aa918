"""Requirements on a replay, which every setting has to meet."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from batchspec.errors import UsageError
from batchspec.requirements import Estimate, Judgement, Requirement, judge, parse_requirement

__all__ = ["judge_replay", "parse_replay_requirements"]

_RATIOS = ("mean_acceptance_length", "draft_acceptance_rate", "tokens_per_decode_step")
_RATES = ("marginal_rate", "conditional_rate")


def parse_replay_requirements(texts: Iterable[str]) -> tuple[Requirement, ...]:
    """Return the requirements.

    Raises:
        UsageError: a text is no requirement, or asks for what a replay does not tell.
    """
    return tuple(map(_parse, texts))


def _parse(text: str) -> Requirement:
    requirement = parse_requirement(text)
    is_odd = requirement.grouping not in (None, "category") or requirement.weighting == "macro"
    if is_odd or requirement.quantity not in (*_RATIOS, *_RATES):
        raise UsageError(
            f"--require {text!r} is not told by a replay: use acceptance_length, acceptance_rate, "
            "tokens_per_decode_step, position[i] or conditional[i], also behind category:NAME: and mean:"
        )
    return requirement


def judge_replay(requirements: Sequence[Requirement], document: Mapping[str, Any]) -> tuple[Judgement, ...]:
    """Hold every requirement against every setting of what ``replay_logs`` returned."""
    return tuple(_judgements(requirements, document))


def _judgements(requirements: Sequence[Requirement], document: Mapping[str, Any]) -> Iterator[Judgement]:
    for setting, cell in enumerate(document["all"]["cells"]):
        name = f" ({cell['method']}, k {cell['num_spec_tokens']})"
        named = [replace(requirement, text=requirement.text + name) for requirement in requirements]
        yield from judge(named, _look_up(document, setting))


def _look_up(document: Mapping[str, Any], setting: int) -> Callable[[Requirement], Estimate]:
    def look_up(requirement: Requirement) -> Estimate:
        summary = document["all"] if requirement.group is None else document["categories"].get(requirement.group)
        if summary is None:
            return Estimate(value=None)
        cell = summary["cells"][setting]
        if requirement.position is not None:
            positions = cell["per_position"]
            is_known = requirement.position < len(positions)
            return Estimate(value=positions[requirement.position][requirement.quantity] if is_known else None)
        low, high = None, None
        if requirement.weighting == "pooled" and cell["intervals"][requirement.quantity] is not None:
            low, high = cell["intervals"][requirement.quantity]
        return Estimate(value=cell[requirement.weighting][requirement.quantity], low=low, high=high)

    return look_up
