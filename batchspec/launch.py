"""From a model's name and plain settings to an engine: how long sequences may be, how many pages there are."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from batchspec.assembly import Limits
from batchspec.blocks import BlockPool, num_blocks_for
from batchspec.compiled import is_stored
from batchspec.counters import Counters
from batchspec.drafting import make_drafter
from batchspec.drafting.means import Means
from batchspec.engine import EngineCore
from batchspec.errors import UsageError
from batchspec.files import RecordedAnswers
from batchspec.grammar import GrammarCompiler
from batchspec.model.cache import KVCache
from batchspec.model.device.opening import page_size, record_steps
from batchspec.model.drafting.loading import load_draft
from batchspec.model.drafting.opening import open_draft_model
from batchspec.model.generation import GenerationDefaults
from batchspec.model.kernel import attend_some
from batchspec.model.load import LoadedModel, load_model
from batchspec.model.locate import EMBEDDED_TARGET
from batchspec.model.memory import free_memory, is_to_be_had
from batchspec.model.runner import ModelRunner
from batchspec.model.screening import ScreeningRunner
from batchspec.model.trust import Trust
from batchspec.scheduler import Scheduler
from batchspec.settings import EngineSettings

__all__ = ["EngineSettings", "Launched", "build_engine", "launch", "load", "resolved"]

_SMALL_MODEL = 30_000_000  # parameters below which one thread does as well as two, and far better on a busy machine
_SHARE_OF_MEMORY = {"cpu": 0.25, "cuda": 0.8}


@dataclass(frozen=True, kw_only=True)
class Launched:
    """An engine, and what was found out on the way to it.

    Attributes:
        core: the engine.
        dimensions: what the settings came to on this machine.
        resolved: what ``auto`` came to.
        notes: sentences about it; more may come while the engine runs.
        generation_defaults: what the model's generation_config.json states.
    """

    core: EngineCore
    dimensions: Mapping[str, int]
    resolved: Mapping[str, Any]
    notes: Many[str]
    generation_defaults: GenerationDefaults


def load(
    model: str | Path | None,
    *,
    device: str,
    dtype: str,
    generation_config: str,
    model_impl: str = "auto",
    trust_remote_code: bool = False,
    allow_pickle: bool = False,
) -> LoadedModel:
    """Load a model.

    Args:
        model: None for the embedded model.
        device: as in ``load_model``, like the two after it.
        dtype: see there.
        generation_config: see there.
        model_impl: ``impl`` there.
        trust_remote_code: Python files of the model's repository may be run.
        allow_pickle: weights may be pickle files.

    Raises:
        ModelError: when the model cannot be loaded or run.
    """
    name = EMBEDDED_TARGET if model is None else model
    trust = Trust(remote_code=trust_remote_code, pickle=allow_pickle)
    return load_model(
        name, device=device, dtype=dtype, generation_config=generation_config, impl=model_impl, trust=trust
    )


def resolved(loaded: LoadedModel) -> dict[str, Any]:
    """Return what ``auto`` came to when the model was loaded."""
    return {
        "dtype": str(loaded.dtype).removeprefix("torch."),
        "device": loaded.device.type,
        "model_impl": loaded.network.implementation,
        "model_fingerprint": loaded.fingerprint,
    }


def launch(loaded: LoadedModel, settings: EngineSettings) -> Launched:
    """Return an engine that runs a model.

    Args:
        loaded: the model.
        settings: of the engine.

    Raises:
        UsageError: when the settings do not fit the model or the memory.
        ModelError: when the draft model cannot be loaded or run.
    """
    notes = [
        note for note in (*loaded.trust.notes(loaded.name), loaded.dtype_reason, _compiling(loaded.device)) if note
    ]
    core = build_engine(loaded, settings, note=notes.append)
    pool, generations = core.scheduler.pool, core.drafter.generations
    learning = {} if generations is None else {"drafts_learn_from": generations.sentence}
    return Launched(
        core=core,
        dimensions={
            "max_model_len": core.desk.limits.max_model_len,
            "num_blocks": pool.num_blocks,
            "block_size": pool.block_size,
            "num_threads": torch.get_num_threads(),
        },
        resolved={**resolved(loaded), **learning},
        notes=notes,
        generation_defaults=loaded.generation_defaults,
    )


def _compiling(device: torch.device) -> str:
    """Return what to tell those who wait for the first step of a new installation."""
    if device.type != "cpu" or is_stored(attend_some):
        return ""
    return "compiling for this processor, which is done once and takes about ten seconds"


def _unheard(note: str) -> None:
    """Tell nobody."""


def build_engine(
    loaded: LoadedModel, settings: EngineSettings, *, note: Callable[[str], None] = _unheard
) -> EngineCore:
    """Return an engine that runs the model.

    Args:
        loaded: the model.
        settings: of the engine.
        note: told, in sentences, what the user should know about how it runs here.

    Raises:
        UsageError: when the settings do not fit the model or the memory.
    """
    max_model_len = settings.max_model_len or loaded.context_length
    if max_model_len > loaded.context_length:
        raise UsageError(
            f"--max-model-len {max_model_len} is beyond the model's context; give at most {loaded.context_length}."
        )
    _settle_threads(loaded)
    speculative = settings.speculative
    draft = load_draft(loaded, speculative.model) if speculative.has_draft_model else None
    bytes_per_token = loaded.bytes_per_token + (0 if draft is None else draft.bytes_per_token)
    block_size = page_size(loaded.device, loaded.dtype)
    num_blocks = _num_blocks(
        bytes_per_token * block_size,
        settings,
        max_model_len,
        block_size=block_size,
        device=loaded.device,
        note=note,
    )
    means = _means(
        loaded, draft, settings, num_blocks=num_blocks, block_size=block_size, max_model_len=max_model_len, note=note
    )
    drafter = make_drafter(speculative, means)
    pool = BlockPool(num_blocks=num_blocks, block_size=block_size)
    cache = KVCache(
        num_blocks=pool.num_blocks,
        block_size=pool.block_size,
        dtype=loaded.kv_dtype,
        device=loaded.device,
    )
    runner = ModelRunner(network=loaded.network, cache=cache, device=loaded.device)
    if runner.on_device is not None:
        record_steps(
            runner.on_device,
            max_num_seqs=settings.max_num_seqs,
            max_num_batched_tokens=settings.max_num_batched_tokens,
            max_model_len=max_model_len,
            num_spec_tokens=drafter.num_spec_tokens,
            note=note,
        )
    screened = loaded.network.screened
    return EngineCore(
        runner=runner if screened is None else ScreeningRunner(runner, screened),
        tokenizer=loaded.tokenizer,
        scheduler=Scheduler(
            pool=pool,
            max_num_seqs=settings.max_num_seqs,
            max_num_batched_tokens=settings.max_num_batched_tokens,
            prefix_caching=settings.prefix_caching,
            is_ready=drafter.is_ready,
        ),
        drafter=drafter,
        counters=Counters(model_name=loaded.name, num_spec_tokens=drafter.num_spec_tokens),
        limits=Limits(
            max_model_len=max_model_len,
            eos_ids=loaded.eos_ids,
            level=settings.level,
            num_spec_tokens=drafter.num_spec_tokens,
            timing=settings.timing,
            model_name=loaded.name,
        ),
        grammars=GrammarCompiler(loaded.grammar_tokenizer),
    )


def _means(
    loaded: LoadedModel,
    draft: LoadedModel | None,
    settings: EngineSettings,
    *,
    num_blocks: int,
    block_size: int,
    max_model_len: int,
    note: Callable[[str], None],
) -> Means:
    """Return what drafters may ask for; earlier answers are read when they do, a draft model gets its pages."""

    def answers(path: str) -> RecordedAnswers:
        return RecordedAnswers(path, encode=loaded.tokenizer.encode_plain)

    if draft is None:
        return Means(max_num_seqs=settings.max_num_seqs, answers=answers)
    open_draft = partial(
        open_draft_model,
        draft,
        num_blocks=num_blocks,
        block_size=block_size,
        max_num_seqs=settings.max_num_seqs,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        max_model_len=max_model_len,
        num_spec_tokens=settings.speculative.num_speculative_tokens,
        prefix_caching=settings.prefix_caching,
        note=note,
    )
    return Means(max_num_seqs=settings.max_num_seqs, answers=answers, draft_model=open_draft)


def _settle_threads(loaded: LoadedModel) -> None:
    """Run a small model on one thread: its operations are over before a second one has woken up.

    Two processes whose threads wait for each other actively on the same cores slow each other down many times over.
    """
    if loaded.device.type == "cpu" and loaded.network.num_parameters < _SMALL_MODEL:
        torch.set_num_threads(1)


def _num_blocks(
    bytes_per_block: int,
    settings: EngineSettings,
    max_model_len: int,
    *,
    block_size: int,
    device: torch.device,
    note: Callable[[str], None],
) -> int:
    """Return the pool size: what was asked for, else enough for a full batch within a share of free memory.

    What cannot be had is halved, as long as one sequence fits. A draft model's keys and values are a part of
    ``bytes_per_block``, as its pool follows the target's.
    """
    longest = num_blocks_for(max_model_len, block_size=block_size)
    if settings.kv_cache_memory is None:
        share = int(free_memory(device) * _SHARE_OF_MEMORY[device.type])
        num_blocks = min(settings.max_num_seqs * longest, share // bytes_per_block)
        remedy = "set a smaller --max-model-len"
    else:
        num_blocks = settings.kv_cache_memory // bytes_per_block
        remedy = f"set --kv-cache-memory to at least {longest * bytes_per_block} bytes or a smaller --max-model-len"
    wanted = num_blocks
    while num_blocks >= longest and not is_to_be_had(num_blocks * bytes_per_block, device):
        num_blocks = max(longest, num_blocks // 2) if num_blocks > longest else 0
        remedy = "there is no memory for more: set a smaller --max-model-len"
    if num_blocks < longest:
        raise UsageError(
            f"the key-value cache would hold {num_blocks * block_size} tokens, "
            f"less than one sequence of {max_model_len}; {remedy}."
        )
    if num_blocks < wanted:
        mib = num_blocks * bytes_per_block / 2**20
        note(f"there is not enough memory for the key-value cache asked for: it is made smaller, {mib:,.0f} MiB")
    return num_blocks
