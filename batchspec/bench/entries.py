"""Who is compared: every drafter, the prompts that it is given, and what it knows beforehand."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from batchspec.bench.settings import BenchSettings
from batchspec.drafting import SpeculativeConfig

__all__ = ["Entry", "best_rival", "entries_for", "has_draft_model"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of the comparison.

    Attributes:
        name: of the row.
        config: of the drafter.
        is_changed: whether it is given the prompts with a word changed.
        is_recalling: whether it knows the answers of an earlier run.
    """

    name: str
    config: SpeculativeConfig
    is_changed: bool = False
    is_recalling: bool = False

    @property
    def is_baseline(self) -> bool:
        """Whether it does not draft."""
        return self.config.method == "none"

    def may_rival(self, other: "Entry") -> bool:
        """Whether it is a fixed choice for the other's prompts that knows no more than the other."""
        is_fair = self.is_changed == other.is_changed and self.is_recalling <= other.is_recalling
        is_unknown = other.config.method == "auto" and self.config.method == "draft_model" and not other.config.model
        return is_fair and not is_unknown and not self.config.adaptive


def has_draft_model(settings: BenchSettings) -> bool:
    """Whether there is a draft model: one was given, or the target is the embedded one."""
    return settings.model is None or settings.draft_model is not None


def entries_for(settings: BenchSettings, *, earlier: str) -> list[Entry]:
    """Return the rows of the comparison; the first is the baseline, and so is the first for changed prompts.

    Args:
        settings: with the names of the drafters.
        earlier: path of the earlier run's responses, for those that recall.
    """
    names = [name for name in settings.drafters if name != "draft_model" or has_draft_model(settings)]
    entries = [Entry(name=name, config=_config(name, settings)) for name in names if name != "recall"]
    if "recall" not in names:
        return entries
    recall = _config("recall", settings, path=earlier)
    entries.append(Entry(name="none, changed", config=_config("none", settings), is_changed=True))
    entries.append(Entry(name="recall", config=recall, is_changed=True, is_recalling=True))
    if "auto" in names:
        auto = _config("auto", settings, path=earlier)
        entries.append(Entry(name="auto, recalling", config=auto, is_changed=True, is_recalling=True))
    entries.append(Entry(name="recall, unchanged", config=recall, is_recalling=True))
    return entries


def best_rival(entry: Entry, entries: Iterable[Entry], rates: dict[str, float]) -> str:
    """Return the name of the fastest of the fixed choices that an entry is compared with."""
    return max((each.name for each in entries if each.may_rival(entry)), key=lambda name: rates[name])


def _config(method: str, settings: BenchSettings, **keys: Any) -> SpeculativeConfig:
    """Return a drafter's configuration: its defaults as ``batchspec run`` has them, and what was set for all."""
    lookup = settings.engine.speculative if settings.engine.speculative.method == "ngram" else SpeculativeConfig()
    keys["method"] = method
    if settings.num_speculative_tokens is not None:
        keys["num_speculative_tokens"] = settings.num_speculative_tokens
    if method == "ngram":
        keys["prompt_lookup_min"], keys["prompt_lookup_max"] = lookup.prompt_lookup_min, lookup.prompt_lookup_max
    if method in ("draft_model", "auto"):
        keys["model"] = settings.draft_model
    return SpeculativeConfig.from_mapping(keys)
