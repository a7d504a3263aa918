"""Two runs brought together: which requests both served, and where their answers part."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from batchspec.compare.answers import Answer, Output, read_answers
from batchspec.compare.measures import Pair
from batchspec.compare.sides import Numbers, Side
from batchspec.compare.store import OutputStore
from batchspec.compare.texts import Divergence, find_divergence

__all__ = ["PairedRuns", "pair_runs"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Times:
    num_tokens: int | None
    num_outputs: int
    first_token_ms: float | None
    generation_ms: float | None

    @classmethod
    def of(cls, answer: Answer) -> "_Times":
        return cls(
            num_tokens=answer.num_tokens,
            num_outputs=max(1, len(answer.outputs)),
            first_token_ms=answer.times.first_token_ms,
            generation_ms=answer.times.generation_ms,
        )

    @property
    def gaps(self) -> tuple[float, float] | None:
        """Milliseconds between the first and the last token, and how many gaps they hold."""
        if self.num_tokens is None or self.generation_ms is None:
            return None
        return self.generation_ms, float(max(0, self.num_tokens - self.num_outputs))


@dataclass(kw_only=True)
class PairedRuns:
    """What both runs answered.

    Attributes:
        pairs: requests that both served, in the order of the first run.
        num_compared: pairs whose texts both runs hold.
        divergences: where answers part, by id, in the order of the second run.
    """

    pairs: list[Pair] = field(default_factory=list)
    num_compared: int = 0
    divergences: dict[str, Divergence] = field(default_factory=dict)


def pair_runs(first: Side, second: Side) -> PairedRuns:
    """Read the answers of both runs and pair them; texts of the first are kept on disk meanwhile.

    Raises:
        UsageError: a file cannot be read further, or the temporary directory is full.
    """
    paired = PairedRuns()
    times: tuple[dict[str, _Times], dict[str, _Times]] = ({}, {})
    is_same: dict[str, bool] = {}
    with OutputStore() as store:
        for custom_id, answer in _answers(first, second):
            store.put(custom_id, answer.outputs)
            times[0][custom_id] = _Times.of(answer)
        for custom_id, answer in _answers(second, first):
            times[1][custom_id] = _Times.of(answer)
            outputs = store.get(custom_id)
            if outputs and answer.outputs:
                is_same[custom_id] = _compare(paired, custom_id, outputs, answer.outputs)
    for custom_id, numbers in first.requests.items():
        if custom_id in second.requests:
            both = numbers, second.requests[custom_id]
            paired.pairs.append(_pair(custom_id, both, times, is_same.get(custom_id)))
    return paired


def _answers(side: Side, other: Side) -> Iterator[tuple[str, Answer]]:
    """Yield the answers to requests that both runs served, each with its id."""
    wanted = {numbers.line: name for name, numbers in side.requests.items() if name in other.requests}
    for answer in read_answers(side.path):
        if answer.line in wanted:
            yield wanted[answer.line], answer


def _compare(paired: PairedRuns, custom_id: str, outputs: tuple[Output, ...], others: tuple[Output, ...]) -> bool:
    """Compare two answers and return whether their texts are equal."""
    paired.num_compared += 1
    divergence = find_divergence(outputs, others)
    if divergence is not None:
        paired.divergences[custom_id] = divergence
    return divergence is None or divergence.character is None


def _pair(
    custom_id: str,
    numbers: tuple[Numbers, Numbers],
    times: tuple[dict[str, _Times], dict[str, _Times]],
    is_same_text: bool | None,
) -> Pair:
    one, other = times[0].get(custom_id), times[1].get(custom_id)
    if one is None or other is None:
        return Pair(custom_id=custom_id, numbers=numbers, is_same_text=is_same_text)
    firsts, gaps = (one.first_token_ms, other.first_token_ms), (one.gaps, other.gaps)
    return Pair(
        custom_id=custom_id,
        numbers=numbers,
        first_token_ms=None if firsts[0] is None or firsts[1] is None else (firsts[0], firsts[1]),
        gaps=None if gaps[0] is None or gaps[1] is None else (gaps[0], gaps[1]),
        is_same_text=is_same_text,
    )
