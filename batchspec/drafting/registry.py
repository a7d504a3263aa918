"""The table that names the drafters: adding one is a file and a line here."""

from collections.abc import Callable, Mapping

from batchspec.drafting.config import SpeculativeConfig
from batchspec.drafting.forced import ForcedDrafter
from batchspec.drafting.interface import Drafter
from batchspec.drafting.ngram import NgramDrafter
from batchspec.drafting.none import NoDrafter

__all__ = ["make_drafter"]


def make_drafter(config: SpeculativeConfig) -> Drafter:
    """Return the drafter that the configuration names."""
    drafter = _MAKERS[config.method](config)
    if config.forced_tokens:
        drafter = ForcedDrafter(drafter, num_spec_tokens=config.num_speculative_tokens)
    return drafter


def _none(_: SpeculativeConfig) -> Drafter:
    return NoDrafter()


def _ngram(config: SpeculativeConfig) -> Drafter:
    return NgramDrafter(
        num_spec_tokens=config.num_speculative_tokens,
        prompt_lookup_min=config.prompt_lookup_min,
        prompt_lookup_max=config.prompt_lookup_max,
    )


_MAKERS: Mapping[str, Callable[[SpeculativeConfig], Drafter]] = {"none": _none, "ngram": _ngram, "forced": _none}
