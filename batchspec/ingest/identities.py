"""What must hold among the counts of one response, whoever wrote them; definitions as in ``report/definitions.py``."""

from collections.abc import Iterator, Mapping, Sequence
from operator import mul

from batchspec.ingest.faults import contradicts
from batchspec.ingest.numbers import MAX_COUNT, MAX_DRAFT
from batchspec.ingest.record import Acceptance

__all__ = ["check_identities", "contradictions", "weighted_sum"]


def check_identities(acceptance: Acceptance, *, completion_tokens: int | None) -> None:
    """Pass if the counts agree with each other.

    Args:
        acceptance: what a response states; absent counts are not compared.
        completion_tokens: tokens of its output, all turns together.

    Raises:
        RowFault: they contradict each other; it says which and how.
    """
    for sentence in contradictions(acceptance, completion_tokens=completion_tokens):
        raise contradicts(sentence)


def contradictions(acceptance: Acceptance, *, completion_tokens: int | None) -> Iterator[str]:
    """Yield a sentence for every identity that does not hold; nothing for an honest response."""
    steps, drafted = acceptance.num_spec_steps, acceptance.num_draft_tokens
    accepted, longest = acceptance.num_accepted_draft_tokens, acceptance.num_spec_tokens
    yield from _of_sizes({"steps": steps, "drafted": drafted, "accepted": accepted, "tokens": completion_tokens})
    if accepted is not None and drafted is not None and accepted > drafted:
        yield f"{accepted} draft tokens accepted of {drafted} drafted"
    if steps is not None and drafted is not None and longest is not None and drafted > steps * longest:
        yield f"{drafted} draft tokens in {steps} steps of at most {longest}"
    if longest is not None and longest > MAX_DRAFT:
        yield f"k is {longest}, more than the {MAX_DRAFT} of any draft"
    if acceptance.acceptance_histogram is not None:
        yield from _of_histogram(acceptance, acceptance.acceptance_histogram)
    if acceptance.per_step_accepted is not None or acceptance.per_step_drafted is not None:
        yield from _of_steps(acceptance)
    if acceptance.num_drafted_per_position is not None:
        yield from _of_positions(acceptance, acceptance.num_drafted_per_position)
    if acceptance.num_decode_steps is not None and completion_tokens is not None:
        yield from _of_lengths(acceptance, completion_tokens=completion_tokens)


def weighted_sum(counts: Sequence[int]) -> int:
    """Return the sum of j * counts[j]: the draft tokens accepted, of a histogram."""
    return sum(map(mul, counts, range(len(counts))))


def _of_sizes(counts: Mapping[str, int | None]) -> Iterator[str]:
    """Refuse sums and products that no response can have; what is stated was checked where it was read."""
    for name, count in counts.items():
        if count is not None and count > MAX_COUNT:
            yield f"{name} come to {count}, more than the {MAX_COUNT} of any response"


def _of_histogram(acceptance: Acceptance, histogram: Sequence[int]) -> Iterator[str]:
    """Compare the histogram with steps, accepted and k; it may be shorter than k + 1 only where k is derived."""
    steps, accepted = acceptance.num_spec_steps, acceptance.num_accepted_draft_tokens
    longest = acceptance.num_spec_tokens
    if steps is not None and sum(histogram) != steps:
        yield f"{steps} steps, but the acceptance histogram adds up to {sum(histogram)}"
    if accepted is not None and weighted_sum(histogram) != accepted:
        yield f"{accepted} draft tokens accepted, but the acceptance histogram tells {weighted_sum(histogram)}"
    if len(histogram) > MAX_DRAFT + 1:
        yield f"the acceptance histogram has {len(histogram)} entries, more than the {MAX_DRAFT + 1} of any draft"
    elif longest is not None and len(histogram) != longest + 1:
        is_short = "num_spec_tokens" in acceptance.derived and len(histogram) <= longest
        if not is_short:
            yield f"the acceptance histogram has {len(histogram)} entries, not {longest + 1} as k = {longest} asks for"


def _of_steps(acceptance: Acceptance) -> Iterator[str]:
    """Compare the per-step lists with each other and with the totals."""
    accepted, drafted = acceptance.per_step_accepted, acceptance.per_step_drafted
    for name, values, total in (
        ("per_step_accepted", accepted, acceptance.num_accepted_draft_tokens),
        ("per_step_drafted", drafted, acceptance.num_draft_tokens),
        ("per_step_position", acceptance.per_step_position, None),
    ):
        if values is not None and acceptance.num_spec_steps is not None and len(values) != acceptance.num_spec_steps:
            yield f"{name} has {len(values)} entries for {acceptance.num_spec_steps} steps"
        if values is not None and total is not None and sum(values) != total:
            yield f"{name} adds up to {sum(values)}, not to {total}"
    if accepted is not None and drafted is not None and any(map(int.__gt__, accepted, drafted)):
        yield "a step accepted more draft tokens than it drafted"
    if drafted and max(drafted) > (acceptance.num_spec_tokens or MAX_DRAFT):
        yield f"a step drafted {max(drafted)} tokens, more than {acceptance.num_spec_tokens or MAX_DRAFT}"
    histogram = acceptance.acceptance_histogram
    if (
        accepted is not None
        and histogram is not None
        and list(histogram) != list(map(accepted.count, range(len(histogram))))
    ):
        yield "per_step_accepted does not give the acceptance histogram"


def _of_positions(acceptance: Acceptance, drafted: Sequence[int]) -> Iterator[str]:
    """Compare the steps that drafted each position with the totals."""
    steps, total = acceptance.num_spec_steps, acceptance.num_draft_tokens
    if total is not None and sum(drafted) != total:
        yield f"the drafts by length add up to {sum(drafted)} draft tokens, not to {total}"
    if steps is not None and drafted and drafted[0] > steps:
        yield f"the drafts by length are {drafted[0]} in {steps} steps"


def _of_lengths(acceptance: Acceptance, *, completion_tokens: int) -> Iterator[str]:
    """Compare what was accepted with what was emitted; only batchspec tells both."""
    accepted, discarded = acceptance.num_accepted_draft_tokens, acceptance.num_discarded_tokens
    if accepted is None or discarded is None or acceptance.num_decode_steps is None:
        return
    emitted = acceptance.num_turns + acceptance.num_decode_steps + accepted - discarded
    if completion_tokens != emitted:
        yield f"completion_tokens is {completion_tokens}, but turns + decode steps + accepted - discarded is {emitted}"
