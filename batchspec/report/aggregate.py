"""The aggregate numbers of a run, from its output records and nothing else."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from batchspec.reconcile import AcceptanceSums
from batchspec.report.bodies import body_facts
from batchspec.report.pool import AcceptancePool

__all__ = ["Aggregate"]


class Aggregate:
    """Adds up output records one by one, for the whole run and for each category.

    Memory grows with the number of categories, error codes and finish reasons, not with the number of records, and the
    document does not depend on the order of the records.
    """

    def __init__(self) -> None:
        self._whole = _Slice()
        self._first_error: tuple[str, str] | None = None
        self._categories: dict[str, _Slice] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one output line, as ``batchspec.records`` makes them or as a vLLM server's batch runner writes them.

        Raises:
            UsageError: the record was made with another number of speculative tokens than those before it.
        """
        self._whole.add(record)
        error = record.get("error")
        if error is not None:
            named = str(record.get("id")), str(error.get("message"))
            self._first_error = named if self._first_error is None else min(self._first_error, named)
        category = record.get("category")
        if category is not None:
            self._categories.setdefault(category, _Slice()).add(record)

    def document(self) -> dict[str, Any]:
        """Return ``requests``, ``tokens``, ``acceptance`` and, by name, the same for each category.

        Streams that do not tell their usage count as requests; their tokens are in no sum, and how many such streams
        there are stands beside the sums.
        ``acceptance`` is None when no record carries metrics. Ratios with an empty denominator are None. Floats are
        unrounded.
        """
        categories = {name: self._categories[name].document() for name in sorted(self._categories)}
        return self._whole.document() | {"categories": categories}

    @property
    def first_error(self) -> str | None:
        """The message of the failed request that stands first in the input; None as long as there is none."""
        return None if self._first_error is None else self._first_error[1]

    def sums(self) -> AcceptanceSums:
        """Return what the records state of acceptance, for the reconciliation."""
        acceptance = self._whole.document()["acceptance"]
        return AcceptanceSums.from_document(acceptance["pooled"]) if acceptance else AcceptanceSums()


class _Slice:
    """The sums over some of the records."""

    def __init__(self) -> None:
        self._num_requests = 0
        self._failures: Counter[str] = Counter()
        self._finish_reasons: Counter[str] = Counter()
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._num_without_usage = 0
        self._pool = AcceptancePool()

    def add(self, record: Mapping[str, Any]) -> None:
        self._num_requests += 1
        response = record.get("response") or {}
        if record.get("error") is not None or response.get("status_code", 200) != 200:
            self._failures[_error_code(record)] += 1
        else:
            self._add_body(response["body"])

    def _add_body(self, body: Any) -> None:
        facts = body_facts(body)
        self._finish_reasons.update(facts.finish_reasons)
        if facts.usage is None:
            self._num_without_usage += 1
            return
        completion_tokens = facts.usage["completion_tokens"]
        self._prompt_tokens += facts.usage["prompt_tokens"]
        self._completion_tokens += completion_tokens
        if facts.speculative_decoding is not None:
            self._pool.add(facts.speculative_decoding, batchspec=facts.batchspec, completion_tokens=completion_tokens)

    def document(self) -> dict[str, Any]:
        num_failed = self._failures.total()
        return {
            "requests": {
                "num_requests": self._num_requests,
                "num_served": self._num_requests - num_failed,
                "num_failed": num_failed,
                "failed_by_code": dict(sorted(self._failures.items())),
                "finish_reasons": dict(sorted(self._finish_reasons.items())),
            },
            "tokens": {
                "prompt_tokens": self._prompt_tokens,
                "completion_tokens": self._completion_tokens,
                "num_requests_without_usage": self._num_without_usage,
            },
            "acceptance": self._pool.document(),
        }


def _error_code(record: Mapping[str, Any]) -> str:
    """Return the error's code, or the HTTP status where the error names none."""
    error = record.get("error") or {}
    code = error.get("code")
    status: object = (record.get("response") or {}).get("status_code")
    return str(status if code is None else code)
