"""What a job asks of whatever serves its requests: an engine in this process, or many elsewhere."""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Protocol

from batchspec.api import Progress
from batchspec.counters import Counters
from batchspec.drafting.generations import Generations
from batchspec.files import RowDefaults
from batchspec.reconcile import AcceptanceSums, Reconciliation
from batchspec.request import Intake, Where
from batchspec.source_counters import SourceCounters

__all__ = ["Serving"]


class Serving(Protocol):
    """As ``batchspec.Engine``, whose docstrings hold for the members here."""

    def run(
        self,
        requests: Iterable[Intake],
        *,
        in_order: bool = True,
        where: Where = "request",
        between_steps: Callable[[], None] = lambda: None,
    ) -> Generator[dict[str, Any], None, None]:
        """Yield a record for every request."""

    def stop(self) -> None:
        """End the run soon."""

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` ended it."""

    @property
    def progress(self) -> Progress:
        """Counts that grow."""

    @property
    def counters(self) -> Counters:
        """The Prometheus account."""

    @property
    def sources(self) -> SourceCounters:
        """Draft tokens by their source."""

    @property
    def generations(self) -> Generations | None:
        """Outputs that are learnt from and can be remembered; None where there are none."""

    @property
    def defaults(self) -> RowDefaults:
        """What requests are sampled with where they do not say."""

    @property
    def model_name(self) -> str:
        """The model's name in records and counters."""

    @property
    def resolved(self) -> dict[str, Any]:
        """What ``auto`` came to."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about that."""

    @property
    def dimensions(self) -> dict[str, int]:
        """What the settings came to."""

    def unreported(self) -> dict[str, AcceptanceSums]:
        """Return what no record tells, by cause."""

    def in_flight(self) -> AcceptanceSums:
        """Return what was counted for requests whose records have not left."""

    def reconcile(
        self, reported: AcceptanceSums, *, carried: Mapping[str, AcceptanceSums] | None = None
    ) -> Reconciliation | None:
        """Compare the records with the counters."""
