"""Histograms of several engines, added up bucket by bucket."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

__all__ = ["Histograms"]

_Key = tuple[str, tuple[tuple[str, str], ...]]


class Histograms:
    """Shows a registry's series with the sums of others' histograms in the place of its own.

    Args:
        registry: whose counters are right already; its histograms are empty.
    """

    def __init__(self, registry: CollectorRegistry):
        self._registry = registry
        self._texts: dict[str, str] = {}

    def put(self, name: str, exposition: str) -> None:
        """Take an engine's exposition in the place of an earlier one of the same engine."""
        self._texts[name] = exposition

    def exposition(self) -> str:
        """Return the series in the text exposition format."""
        shown = CollectorRegistry()
        shown.register(self)
        return generate_latest(shown).decode()

    def collect(self) -> Iterator[Metric]:
        """Yield the registry's families; of histograms the sums, a series being born when the first of its kind was."""
        sums, born = self._sums()
        for family in self._registry.collect():
            if family.type == "histogram":
                family.samples = [_summed(sample, sums, born) for sample in family.samples]
            yield family

    def _sums(self) -> tuple[dict[_Key, float], dict[_Key, float]]:
        sums: dict[_Key, float] = {}
        born: dict[_Key, float] = {}
        for text in self._texts.values():
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    key = _key(sample)
                    sums[key] = sums.get(key, 0.0) + sample.value
                    born[key] = min(born.get(key, sample.value), sample.value)
        return sums, born


def _summed(sample: Sample, sums: dict[_Key, float], born: dict[_Key, float]) -> Sample:
    found = born if sample.name.endswith("_created") else sums
    return sample._replace(value=found.get(_key(sample), sample.value))


def _key(sample: Sample) -> _Key:
    return sample.name, tuple(sorted(sample.labels.items()))
