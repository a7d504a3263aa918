"""The table that names the drafters: adding one is a file and a line here."""

from collections.abc import Callable, Mapping

from batchspec.drafting.adaptive import AdaptiveDrafter
from batchspec.drafting.auto import AutoDrafter
from batchspec.drafting.config import SpeculativeConfig
from batchspec.drafting.costs import StepCosts
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.drafting.estimates import AcceptanceEstimates
from batchspec.drafting.forced import ForcedDrafter
from batchspec.drafting.interface import Drafter
from batchspec.drafting.means import Means
from batchspec.drafting.ngram import NgramDrafter
from batchspec.drafting.none import NoDrafter
from batchspec.drafting.recall import RecallDrafter, trie_over
from batchspec.drafting.suffix import SuffixDrafter
from batchspec.drafting.thrift import Thrift

__all__ = ["make_drafter"]

_GENERATION_SIZE = 64  # of requests whose outputs become visible together; one of them fills the usual batch


def make_drafter(config: SpeculativeConfig, means: Means | None = None) -> Drafter:
    """Return the drafter that the configuration names.

    Args:
        config: its keys.
        means: what it may need of the engine; None for nothing: then neither a draft model nor earlier answers.

    Raises:
        UsageError: the draft model or the earlier answers cannot be had.
    """
    means = means or Means()
    estimates, costs = AcceptanceEstimates(), StepCosts()
    drafter = (
        _auto(config, means, estimates, costs) if config.method == "auto" else _MAKERS[config.method](config, means)
    )
    if config.forced_tokens:
        drafter = ForcedDrafter(drafter, num_spec_tokens=config.num_speculative_tokens)
    if config.adaptive:
        drafter = AdaptiveDrafter(drafter, estimates=estimates, costs=costs)
    return drafter


def _none(_: SpeculativeConfig, __: Means) -> Drafter:
    return NoDrafter()


def _ngram(config: SpeculativeConfig, _: Means) -> Drafter:
    return NgramDrafter(
        num_spec_tokens=config.num_speculative_tokens,
        prompt_lookup_min=config.prompt_lookup_min,
        prompt_lookup_max=config.prompt_lookup_max,
    )


def _suffix(config: SpeculativeConfig, means: Means) -> Drafter:
    return SuffixDrafter(
        num_spec_tokens=config.num_speculative_tokens,
        max_depth=config.suffix_decoding_max_tree_depth,
        factor=config.suffix_decoding_max_spec_factor,
        min_prob=config.suffix_decoding_min_token_prob,
        most_outputs=config.suffix_decoding_max_cached_requests,
        generation_size=None if config.adaptive else max(_GENERATION_SIZE, means.max_num_seqs),
    )


def _recall(config: SpeculativeConfig, means: Means) -> Drafter:
    answers = means.answers(config.path or "")
    most = config.suffix_decoding_max_cached_requests
    return RecallDrafter(
        num_spec_tokens=config.num_speculative_tokens,
        answer_to=answers.answer_to,
        trie=trie_over(answers.latest(most), max_depth=config.suffix_decoding_max_tree_depth),
        factor=config.suffix_decoding_max_spec_factor,
        min_prob=config.suffix_decoding_min_token_prob,
    )


def _draft_model(config: SpeculativeConfig, means: Means) -> DraftModelDrafter:
    return DraftModelDrafter(num_spec_tokens=config.num_speculative_tokens, draft_model=means.draft_model())


def _auto(config: SpeculativeConfig, means: Means, estimates: AcceptanceEstimates, costs: StepCosts) -> Drafter:
    drafters: list[Drafter] = [_suffix(config, means), _ngram(config, means)]
    if config.path is not None:
        drafters.insert(0, _recall(config, means))
    last = _draft_model(config, means) if config.has_draft_model else None
    thrift = Thrift(last, costs=costs, estimates=estimates) if last is not None and config.adaptive else None
    return AutoDrafter(drafters, last=last, estimates=estimates, thrift=thrift, learns=not config.adaptive)


_MAKERS: Mapping[str, Callable[[SpeculativeConfig, Means], Drafter]] = {
    "none": _none,
    "ngram": _ngram,
    "suffix": _suffix,
    "recall": _recall,
    "draft_model": _draft_model,
    "forced": _none,
}
