"""The quantity that a requirement is about, from a report of logs."""

from collections.abc import Mapping, Sequence
from typing import Any

from batchspec.errors import UsageError
from batchspec.report.logs.groups import Grouping
from batchspec.requirements import Estimate, Requirement

__all__ = ["grouping_of", "measured"]

_ABSENT: Mapping[str, Any] = {"value": None}


def grouping_of(requirements: Sequence[Requirement], *, by: Grouping | None) -> Grouping | None:
    """Return what requests have to be told apart by, so that every requirement can be judged.

    Args:
        requirements: some of which name a group.
        by: what the user asked for.

    Raises:
        UsageError: two different groupings are needed at once, or a macro mean without any.
    """
    for requirement in requirements:
        if requirement.grouping is not None:
            by = by or Grouping(requirement.grouping)
            if by != requirement.grouping:
                raise UsageError(
                    f"--require {requirement.text!r} needs --by {requirement.grouping}, not --by {by}: make two reports"
                )
    for requirement in requirements:
        if requirement.weighting == "macro" and by is None:
            raise UsageError(f"--require {requirement.text!r} needs --by, which says what the mean is over")
    return by


def measured(document: Mapping[str, Any], requirement: Requirement) -> Estimate:
    """Return value and interval of the quantity; a value of None where the logs do not tell it.

    Args:
        document: what ``survey_logs`` made, with the groups that the requirement names.
        requirement: names the quantity.
    """
    if requirement.weighting == "macro":
        macro = document["macro"]
        return _estimate(macro["pooled"][requirement.quantity] if macro else _ABSENT)
    groups, overall = document["groups"], document["overall"]
    found = overall if requirement.group is None else groups.get(requirement.group)
    if found is None:
        return Estimate(value=None)
    if requirement.position is None:
        return _estimate(found[requirement.weighting][requirement.quantity])
    positions = {entry["position"]: entry for entry in found["per_position"]}
    entry = positions.get(requirement.position)
    return _estimate(entry[requirement.quantity] if entry else _ABSENT)


def _estimate(measure: Mapping[str, Any]) -> Estimate:
    return Estimate(value=measure["value"], low=measure.get("low"), high=measure.get("high"))
