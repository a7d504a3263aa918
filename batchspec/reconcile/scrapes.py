"""One scrape of a server's metrics: the counters of drafts and of finished sequences, series by series."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from batchspec.errors import UsageError

__all__ = ["FINISHED", "Scrape", "Series", "read_scrape"]

FINISHED = "num_finished_sequences"
_PER_POSITION = "num_accepted_tokens_per_pos"
_LLAMA_AND_VLLM = {
    "spec_decode_num_drafts_total": "num_spec_steps",
    "spec_decode_num_draft_tokens_total": "num_draft_tokens",
    "spec_decode_num_accepted_tokens_total": "num_accepted_draft_tokens",
    "spec_decode_num_accepted_tokens_per_pos_total": _PER_POSITION,
}
_QUANTITIES = {
    **{f"{engine}:{name}": quantity for engine in ("vllm", "llamacpp") for name, quantity in _LLAMA_AND_VLLM.items()},
    "vllm:request_success_total": FINISHED,
    "trtllm_spec_decode_num_draft_tokens_total": "num_draft_tokens",
    "trtllm_spec_decode_num_accepted_tokens_total": "num_accepted_draft_tokens",
}
_LARGEST_EXACT = 2**53  # beyond, a float no longer holds every integer


@dataclass(frozen=True, kw_only=True, order=True)
class Series:
    """One counter of one engine.

    Attributes:
        name: as the server names it.
        labels: (name, value) pairs in alphabetical order.
    """

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        labels = ",".join(f'{name}="{value}"' for name, value in self.labels)
        return f"{self.name}{{{labels}}}" if labels else self.name

    def label(self, name: str) -> str | None:
        """Return a label's value, None where the series has no such label."""
        return dict(self.labels).get(name)

    @property
    def quantity(self) -> str:
        """What it counts, by the name that the records use."""
        return _QUANTITIES[self.name]

    @property
    def position(self) -> int | None:
        """The position in the draft, of a counter that is split by it."""
        position = self.label("position")
        return int(position) if self.quantity == _PER_POSITION and position is not None else None


@dataclass(frozen=True, kw_only=True)
class Scrape:
    """The counters that can be reconciled, and nothing else: no gauges, no ``_created`` times.

    Attributes:
        path: the file, as it was named.
        counts: value of every series.
    """

    path: str
    counts: Mapping[Series, int]


def read_scrape(path: str | Path) -> Scrape:
    """Return what a file in Prometheus' text format counts; a server without speculation counts no drafts.

    Raises:
        UsageError: the file cannot be read, is not in that format, states a series twice, or a value that is no count.
    """
    counts: dict[Series, int] = {}
    for sample in _samples(path):
        if sample.name in _QUANTITIES:
            series = Series(name=sample.name, labels=tuple(sorted(sample.labels.items())))
            if series in counts:
                raise UsageError(f"{path} states {series} twice: give one scrape of one server")
            counts[series] = _count(sample, series, path=path)
    return Scrape(path=str(path), counts=counts)


def _samples(path: str | Path) -> Iterator[Sample]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        families = list(text_string_to_metric_families(text))
    except OSError as error:
        raise UsageError(f"scrape {path} cannot be read ({error.strerror or error}): check the path") from error
    except (ValueError, IndexError, KeyError) as error:
        reason = " ".join(str(error).split())[:80]
        raise UsageError(
            f"{path} is not in Prometheus' text format ({reason or 'a line is malformed'}): "
            "save what the server answers at /metrics"
        ) from error
    if not families:
        raise UsageError(f"scrape {path} holds no metric: save what the server answers at /metrics")
    for family in families:
        yield from family.samples


def _count(sample: Sample, series: Series, *, path: str | Path) -> int:
    """Return the value of a counter after it was checked to be one, and its position to be a position."""
    value, position = sample.value, series.label("position")
    if not 0 <= value <= _LARGEST_EXACT or value % 1:
        raise UsageError(f"{path} says {series} is {value}: a counter of tokens is a whole number of at least 0")
    if series.quantity == _PER_POSITION and not (position or "").isdecimal():
        raise UsageError(f'{path} has {series}: its label "position" must be a whole number of at least 0')
    return int(value)
