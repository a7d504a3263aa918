"""Counters of several engines as those of one: counters add up, histograms bucket by bucket."""

from collections.abc import Iterator, Mapping

from prometheus_client import Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from batchspec.counters import Counters

__all__ = ["MergedCounters"]

_Key = tuple[str, tuple[tuple[str, str], ...]]


class MergedCounters(Counters):
    """Counters that are restored from other engines' snapshots, and show the sums of their histograms.

    Args:
        model_name: as the engines name it.
        num_spec_tokens: the engines' k.
    """

    def __init__(self, *, model_name: str, num_spec_tokens: int):
        self._shown: dict[str, Mapping[_Key, float]] = {}
        super().__init__(model_name=model_name, num_spec_tokens=num_spec_tokens)

    def show_histograms(self, name: str, exposition: str) -> None:
        """Take an engine's series in the text exposition format, in the place of earlier ones of the same engine."""
        families = text_string_to_metric_families(exposition)
        self._shown[name] = {
            _key(sample): sample.value for family in families if family.type == "histogram" for sample in family.samples
        }

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        family = Histogram(f"vllm:{name}", text, labelnames=tuple(self.labels), registry=None, buckets=buckets)
        self.registry.register(_Sums(family, self._shown))
        return family.labels(**self.labels)


class _Sums:
    """A family with the sums of others' values in the place of its own; born when the first of them was."""

    def __init__(self, family: Histogram, shown: Mapping[str, Mapping[_Key, float]]):
        self._family = family
        self._shown = shown

    def describe(self) -> list[Metric]:
        return list(self._family.describe())

    def collect(self) -> Iterator[Metric]:
        for metric in self._family.collect():
            metric.samples = [self._summed(sample) for sample in metric.samples]
            yield metric

    def _summed(self, sample: Sample) -> Sample:
        values = [values[key] for values in self._shown.values() if (key := _key(sample)) in values]
        if not values:
            return sample
        return sample._replace(value=min(values) if sample.name.endswith("_created") else sum(values))


def _key(sample: Sample) -> _Key:
    """Identify a series; the parser writes the bounds of buckets as the registry does."""
    return sample.name, tuple(sorted(sample.labels.items()))
