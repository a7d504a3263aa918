"""Requirements on acceptance numbers, as a gate for continuous integration: ``--require 'acceptance_length>=2.1'``.

Plain text in, plain numbers compared: any command that can look a quantity up can be a gate.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from batchspec.errors import UsageError

__all__ = ["Estimate", "Judgement", "Requirement", "judge", "parse_requirement", "parse_requirements"]

_FORM = re.compile(
    r"(?:(?P<grouping>category|engine|file):(?P<group>.+?):)?(?:(?P<weighting>pooled|mean|macro):)?"
    r"(?P<quantity>[a-z_]+)(?:\[(?P<position>[0-9]{1,4})\])?\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[0-9]*\.?[0-9]+)"
)
_SIGNS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
)
_RATIOS = MappingProxyType(
    {
        "acceptance_length": "mean_acceptance_length",
        "mean_acceptance_length": "mean_acceptance_length",
        "acceptance_rate": "draft_acceptance_rate",
        "draft_acceptance_rate": "draft_acceptance_rate",
        "tokens_per_decode_step": "tokens_per_decode_step",
        "completion_tokens_per_step": "completion_tokens_per_step",
    }
)
_RATES = MappingProxyType({"position": "marginal_rate", "conditional": "conditional_rate"})
_WEIGHTINGS = MappingProxyType({None: "pooled", "pooled": "pooled", "mean": "mean_over_requests", "macro": "macro"})
_EXAMPLES = "acceptance_length>=2.1, position[0]>=0.6 or category:code:acceptance_length>=3"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What one quantity has to be.

    Attributes:
        text: as the user wrote it.
        quantity: ``mean_acceptance_length``, ``draft_acceptance_rate``, ``tokens_per_decode_step``,
            ``completion_tokens_per_step``, or with a position ``marginal_rate`` or ``conditional_rate``.
        position: 0-based position in the draft; None for a ratio of the whole.
        weighting: ``pooled``, ``mean_over_requests`` or ``macro``.
        grouping: ``category``, ``engine`` or ``file``; None for all requests.
        group: which one; None for all requests.
        sign: how the value is compared with the bound.
        bound: a length in tokens, or a rate as a fraction of one.
    """

    text: str
    quantity: str
    position: int | None
    weighting: str
    grouping: str | None
    group: str | None
    sign: str
    bound: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A quantity as it was found.

    Attributes:
        value: None where it is not known.
        low: lower end of its interval; None where there is none.
        high: upper end.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A requirement and what it was held against."""

    requirement: Requirement
    estimate: Estimate

    @property
    def holds(self) -> bool:
        """Whether the value is what it has to be; a value that is not known is not."""
        value = self.estimate.value
        return value is not None and _SIGNS[self.requirement.sign](value, self.requirement.bound)

    def sentence(self) -> str:
        """Return the requirement, the value and its interval in one line."""
        estimate = self.estimate
        verdict = "holds" if self.holds else "failed"
        if estimate.value is None:
            return f"requirement {self.requirement.text} {verdict}: the value is not known"
        between = "" if estimate.low is None else f", interval {estimate.low:.4f} to {estimate.high:.4f}"
        return f"requirement {self.requirement.text} {verdict}: the value is {estimate.value:.4f}{between}"

    def document(self) -> dict[str, Any]:
        """Return requirement, value, interval and verdict for JSON."""
        estimate = self.estimate
        return {
            "require": self.requirement.text,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "holds": self.holds,
        }


def parse_requirement(text: str) -> Requirement:
    """Return the requirement that a text states.

    Args:
        text: ``[category:NAME:][mean:|macro:]QUANTITY`` with ``>=``, ``<=``, ``>`` or ``<`` and a number.

    Raises:
        UsageError: it is no requirement, or names no quantity.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--require {text!r} is no requirement: write it as {_EXAMPLES}")
    name, position = found["quantity"], found["position"]
    known = _RATIOS if position is None else _RATES
    if name not in known:
        shape = "" if position is None else " with a position in brackets"
        raise UsageError(f"--require {text!r}: {name!r} is no quantity{shape}; choose one of {', '.join(known)}")
    if position is not None and found["weighting"] not in (None, "pooled"):
        raise UsageError(f"--require {text!r}: a position is always pooled over the steps; leave out the weighting")
    if found["group"] is not None and found["weighting"] == "macro":
        raise UsageError(f"--require {text!r}: the macro mean is over all groups; leave out {found['grouping']}")
    return Requirement(
        text=text.strip(),
        quantity=known[name],
        position=None if position is None else int(position),
        weighting=_WEIGHTINGS[found["weighting"]],
        grouping=found["grouping"],
        group=found["group"],
        sign=found["sign"],
        bound=float(found["bound"]),
    )


def parse_requirements(texts: Iterable[str]) -> tuple[Requirement, ...]:
    """Return the requirements of all texts; UsageError for the first that is none."""
    return tuple(map(parse_requirement, texts))


def judge(requirements: Iterable[Requirement], look_up: Callable[[Requirement], Estimate]) -> tuple[Judgement, ...]:
    """Hold each requirement against its quantity.

    Args:
        requirements: what to hold.
        look_up: returns the quantity that a requirement is about, ``Estimate(value=None)`` where it is not known.
    """
    return tuple(Judgement(requirement=one, estimate=look_up(one)) for one in requirements)
