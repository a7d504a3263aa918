"""vLLM's ``speculative_decoding`` and its forerunner, batchspec's fields beside it, and what llama-swap keeps of it."""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from batchspec.ingest.faults import contradicts, malformed
from batchspec.ingest.identities import weighted_sum
from batchspec.ingest.numbers import MAX_DRAFT, whole, wholes
from batchspec.ingest.record import Acceptance

__all__ = ["read_sparse", "read_vllm"]

_NONE: frozenset[str] = frozenset()


def read_vllm(block: Mapping[str, Any], body: Mapping[str, Any]) -> Acceptance:
    """Return what ``metrics.speculative_decoding`` states, with ``metrics.batchspec`` where it stands beside it.

    vLLM's offline object calls the histogram ``histogram`` and has no totals: they follow from it. llama-swap keeps the
    two totals of draft tokens only. ``acceptance_histogram_by_draft_length`` tells how many drafts reached a position.
    """
    histogram = wholes(block, "acceptance_histogram")
    if histogram is None:
        histogram = wholes(block, "histogram")
    metrics = body.get("metrics")
    beside = metrics.get("batchspec") if type(metrics) is dict else None
    return _acceptance(block, histogram, beside=beside if type(beside) is dict else {})


def read_sparse(block: Mapping[str, Any], body: Mapping[str, Any]) -> Acceptance:
    """Return what a choice's ``speculative_decoding_stats`` states, whose histogram leaves out the empty entries."""
    histogram = block.get("acceptance_histogram")
    if type(histogram) is not dict:
        return read_vllm(block, body)
    longest = whole(block, "num_spec_tokens")
    return _acceptance(block, _dense(histogram, longest=longest), beside={})


def _acceptance(block: Mapping[str, Any], histogram: list[int] | None, *, beside: Mapping[str, Any]) -> Acceptance:
    steps, accepted = whole(block, "num_spec_steps"), whole(block, "num_accepted_draft_tokens")
    derived = _NONE
    if histogram is not None and steps is None:
        steps, derived = sum(histogram), derived | {"num_spec_steps"}
    if histogram is not None and accepted is None:
        accepted, derived = weighted_sum(histogram), derived | {"num_accepted_draft_tokens"}
    by_length = block.get("acceptance_histogram_by_draft_length")
    return Acceptance(
        num_spec_steps=steps,
        num_draft_tokens=whole(block, "num_draft_tokens"),
        num_accepted_draft_tokens=accepted,
        num_spec_tokens=whole(block, "num_spec_tokens"),
        acceptance_histogram=histogram,
        per_step_accepted=wholes(block, "per_step_accepted"),
        per_step_drafted=wholes(block, "per_step_drafted"),
        per_step_position=wholes(beside, "per_step_position"),
        num_drafted_per_position=None if by_length is None else _drafted(by_length, histogram=histogram),
        num_decode_steps=whole(beside, "num_decode_steps"),
        num_discarded_tokens=whole(beside, "num_discarded_tokens"),
        num_turns=whole(beside, "num_turns") or 1,
        derived=derived,
    )


def _dense(sparse: Mapping[str, Any], *, longest: int | None) -> list[int]:
    """Return a histogram with all its entries, k + 1 where k is told."""
    filled = {_length(name): whole(sparse, name) or 0 for name in sparse}
    highest = max(filled, default=0)
    if longest is not None and highest > longest:
        raise contradicts(f"the acceptance histogram has an entry for {highest} accepted, more than k = {longest}")
    return [filled.get(j, 0) for j in range((highest if longest is None else min(longest, MAX_DRAFT)) + 1)]


def _length(name: str) -> int:
    """Return the number that a key of a histogram is."""
    if not (name.isascii() and name.isdigit() and int(name) <= MAX_DRAFT):
        raise malformed("acceptance_histogram", name, f"an object whose keys are numbers from 0 to {MAX_DRAFT}")
    return int(name)


def _drafted(by_length: Any, *, histogram: list[int] | None) -> list[int]:
    """Return for each position the steps whose draft was longer, from one histogram for each length of a draft.

    Steps whose draft a grammar cut to nothing stand under length 0; the acceptance histogram may leave them out.
    """
    if type(by_length) is not dict:
        raise malformed("acceptance_histogram_by_draft_length", by_length, "an object of lists")
    rows = {_length(name): wholes(by_length, name) or [] for name in by_length}
    if histogram is not None:
        sums = [_added(rows.values()), _added(row for length, row in rows.items() if length)]
        if _added([histogram]) not in sums:
            raise contradicts(f"the histograms by draft length add up to {sums[0]}, not to the acceptance histogram")
    longest = max(rows, default=0)
    return [sum(sum(row) for length, row in rows.items() if length > position) for position in range(longest)]


def _added(histograms: Iterable[list[int]]) -> list[int]:
    """Return the sum of histograms of any lengths, without the zeros at its end."""
    added = [sum(counts) for counts in zip_longest(*histograms, fillvalue=0)]
    while added and not added[-1]:
        added.pop()
    return added
