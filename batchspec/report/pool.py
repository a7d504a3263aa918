"""The acceptance metrics of many records, added up one by one in constant memory."""

from collections.abc import Mapping
from typing import Any

from batchspec.errors import UsageError
from batchspec.report.identities import broken_identities
from batchspec.report.positions import drafted_per_position, per_position_document, survivors
from batchspec.report.ratios import MeanOfRatios, acceptance_length, ratio

__all__ = ["AcceptancePool"]


class AcceptancePool:
    """Sums over records that carry ``metrics.speculative_decoding``, and running means over these records.

    Totals are added as the records state them and positions from their histograms, so that a record which contradicts
    itself is counted as inconsistent and cannot reconcile.
    """

    def __init__(self) -> None:
        self._num_spec_tokens: int | None = None
        self._histogram: list[int] = []
        self._drafted: list[int | None] = []
        self._num_requests = self._num_without_step = self._num_inconsistent = 0
        self._num_steps = self._num_accepted = self._num_drafted = 0
        self._num_decode_steps = self._num_discarded = self._num_emitted = self._num_without_emitted = 0
        self._lengths, self._rates, self._emitted_lengths = MeanOfRatios(), MeanOfRatios(), MeanOfRatios()

    def add(
        self,
        speculative_decoding: Mapping[str, Any],
        *,
        batchspec: Mapping[str, Any] | None,
        completion_tokens: int,
    ) -> None:
        """Add one record's metrics.

        Args:
            speculative_decoding: the documented fields.
            batchspec: the fields beside them; None in a record of another writer, which makes the sums of what was
                emitted unknown.
            completion_tokens: tokens of the output, of all turns together.

        Raises:
            UsageError: the record was made with another number of speculative tokens than those before it.
        """
        self._fix_num_spec_tokens(speculative_decoding["num_spec_tokens"])
        broken = broken_identities(speculative_decoding, batchspec=batchspec, completion_tokens=completion_tokens)
        self._num_requests += 1
        self._num_inconsistent += bool(broken)
        num_steps = speculative_decoding["num_spec_steps"]
        num_accepted = speculative_decoding["num_accepted_draft_tokens"]
        num_drafted = speculative_decoding["num_draft_tokens"]
        self._num_without_step += num_steps == 0
        self._num_steps += num_steps
        self._num_accepted += num_accepted
        self._num_drafted += num_drafted
        self._lengths.add(acceptance_length(num_accepted=num_accepted, num_steps=num_steps))
        self._rates.add(ratio(num_accepted, num_drafted))
        self._add_positions(speculative_decoding)
        self._add_emitted(batchspec, completion_tokens=completion_tokens, has_step=num_steps > 0)

    def _fix_num_spec_tokens(self, num_spec_tokens: int) -> None:
        if self._num_spec_tokens is None:
            self._num_spec_tokens = num_spec_tokens
            self._histogram = [0] * (num_spec_tokens + 1)
            self._drafted = [0] * num_spec_tokens
        elif num_spec_tokens != self._num_spec_tokens:
            raise UsageError(
                f"the records mix num_spec_tokens {self._num_spec_tokens} and {num_spec_tokens}; "
                "make one report for each setting"
            )

    def _add_positions(self, speculative_decoding: Mapping[str, Any]) -> None:
        for j, count in enumerate(speculative_decoding["acceptance_histogram"][: len(self._histogram)]):
            self._histogram[j] += count
        drafted = drafted_per_position(
            num_spec_steps=speculative_decoding["num_spec_steps"],
            num_draft_tokens=speculative_decoding["num_draft_tokens"],
            num_spec_tokens=speculative_decoding["num_spec_tokens"],
            per_step_drafted=speculative_decoding.get("per_step_drafted"),
        )
        pairs = zip(self._drafted, drafted, strict=True)
        self._drafted = [None if total is None or more is None else total + more for total, more in pairs]

    def _add_emitted(self, batchspec: Mapping[str, Any] | None, *, completion_tokens: int, has_step: bool) -> None:
        if batchspec is None:
            self._num_without_emitted += 1
            return
        num_emitted = completion_tokens - batchspec.get("num_turns", 1)
        num_decode_steps = batchspec["num_decode_steps"]
        self._num_emitted += num_emitted
        self._num_decode_steps += num_decode_steps
        self._num_discarded += batchspec["num_discarded_tokens"]
        if has_step:
            self._emitted_lengths.add(ratio(num_emitted, num_decode_steps))

    def document(self) -> dict[str, Any] | None:
        """Return the ``acceptance`` document; None when no record was added."""
        if self._num_spec_tokens is None:
            return None
        return {
            "source": "records",
            "num_spec_tokens": self._num_spec_tokens,
            "pooled": self._pooled(),
            "mean_over_requests": self._mean_over_requests(),
            "per_position": per_position_document(
                num_spec_steps=self._num_steps, num_accepted=survivors(self._histogram), num_drafted=self._drafted
            ),
            "num_inconsistent_requests": self._num_inconsistent,
        }

    def _pooled(self) -> dict[str, Any]:
        knows_emitted = self._num_without_emitted == 0
        return {
            "mean_acceptance_length": acceptance_length(num_accepted=self._num_accepted, num_steps=self._num_steps),
            "draft_acceptance_rate": ratio(self._num_accepted, self._num_drafted),
            "acceptance_histogram": list(self._histogram),
            "num_spec_steps": self._num_steps,
            "num_accepted_draft_tokens": self._num_accepted,
            "num_draft_tokens": self._num_drafted,
            "num_decode_steps": self._num_decode_steps if knows_emitted else None,
            "num_discarded_tokens": self._num_discarded if knows_emitted else None,
            "tokens_per_decode_step": ratio(self._num_emitted, self._num_decode_steps) if knows_emitted else None,
            "num_requests": self._num_requests,
        }

    def _mean_over_requests(self) -> dict[str, Any]:
        return {
            "mean_acceptance_length": self._lengths.value,
            "draft_acceptance_rate": self._rates.value,
            "tokens_per_decode_step": None if self._num_without_emitted else self._emitted_lengths.value,
            "num_requests": self._num_requests - self._num_without_step,
            "num_requests_without_step": self._num_without_step,
        }
