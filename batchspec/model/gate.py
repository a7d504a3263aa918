"""The gate at load time: a model runs on pages only if its numbers stay the same.

First what the configuration says, then a probe in float32: a few short sequences, each by itself through the model's
own eager attention, against the same packed and chunked over pages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from batchspec.blocks import num_blocks_for
from batchspec.errors import ModelError
from batchspec.model.attention import ATTENTION_NAME
from batchspec.model.cache import KVCache
from batchspec.model.modules import ModuleNetwork
from batchspec.model.runner import ModelRunner
from batchspec.request import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan

__all__ = ["admit"]

_BLOCK_SIZE = 8
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}  # of the largest logit
_WINDOW = 8  # sliding windows are cut to this for the probe, so that short sequences reach beyond them
_MOST_PARAMETERS = 2_000_000_000  # larger models are probed in their own dtype
_LAYER_TYPES = {"full_attention", "sliding_attention"}
_NO_INTERFACE = "it does not use transformers' attention interface"
_NOT_FINITE = (
    "the model's logits are NaN or infinite for a short probe of its own forward pass; check the model's weights, some "
    "of them are NaN, infinite or far too large."
)


class _NotFinite(Exception):
    """The model's own logits are not numbers."""


def admit(module: Any, *, device: torch.device) -> int:
    """Switch a freshly loaded model to paged attention; return the bytes of keys and values per token.

    Args:
        module: a transformers causal language model with eager attention.
        device: where it is.

    Raises:
        ModelError: when its family cannot run on pages, in a sentence that names the model type and the reason; or when
            its own logits are NaN or infinite.
    """
    config = module.config.get_text_config()
    kind = f"the model type {config.model_type!r} is not supported"
    if module.config.is_encoder_decoder:
        raise ModelError(f"{kind}: it has an encoder; give a decoder-only model.")
    others = sorted(set(getattr(config, "layer_types", None) or ()) - _LAYER_TYPES)
    if others:
        raise ModelError(f"{kind}: it has layers of type {', '.join(others)}; only attention layers can run on pages.")
    try:
        cache = _probe(module, device=device)
    except _NotFinite:
        raise ModelError(_NOT_FINITE) from None
    except ModelError as error:
        raise ModelError(f"{kind}: {error}.") from None
    except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
        raise ModelError(f"{kind}: its forward pass fails with {type(error).__name__}: {error}.") from error
    stored = torch.float32 if device.type == "cpu" else next(module.parameters()).dtype
    return sum(layout.num_elements for layout in cache.layouts) * stored.itemsize


def _probe(module: Any, *, device: torch.device) -> KVCache:
    """Switch the model over, comparing its logits before and after; return the cache that it filled.

    Raises:
        ModelError: with the reason, as the second half of a sentence.
    """
    probes = _probes(module.config.get_text_config())
    with _float32(module) as dtype, _short_windows(module):
        expected = [_alone(module, probe, device=device) for probe in probes]
        _switch(module)
        cache = _probe_cache(probes, dtype=dtype, device=device)
        found = _packed(ModelRunner(network=ModuleNetwork(module), cache=cache, device=device), probes)
        if not cache.layouts:
            raise ModelError(_NO_INTERFACE)
        _compare(expected, found, tolerance=_TOLERANCE[dtype])
    return cache


@contextmanager
def _float32(module: Any) -> Iterator[torch.dtype]:
    """Widen the parameters to float32 for the probe, unless the model is large; yield the dtype probed in."""
    dtypes = {name: parameter.dtype for name, parameter in module.named_parameters()}
    if sum(parameter.numel() for parameter in module.parameters()) > _MOST_PARAMETERS:
        yield next(iter(dtypes.values()))
        return
    for parameter in module.parameters():
        parameter.data = parameter.data.float()
    yield torch.float32
    for name, parameter in module.named_parameters():
        parameter.data = parameter.data.to(dtypes[name])


@contextmanager
def _short_windows(module: Any) -> Iterator[None]:
    """Cut the sliding windows of modules and configurations for the probe: the true ones may be thousands wide."""
    holders = {id(part): part for part in (*module.modules(), module.config, module.config.get_text_config())}
    holders |= {id(part.config): part.config for part in module.modules() if hasattr(part, "config")}
    found = [(part, getattr(part, "sliding_window", None)) for part in holders.values()]
    windows = [(part, window) for part, window in found if isinstance(window, int) and window > _WINDOW]
    try:
        for part, _ in windows:
            part.sliding_window = _WINDOW
        yield
    finally:
        for part, window in windows:
            part.sliding_window = window


def _probes(config: Any) -> list[list[int]]:
    """Return seeded token ids: two short sequences, one of them longer than the windows are meanwhile."""
    random = np.random.default_rng(0)
    return [random.integers(0, config.vocab_size, size=length).tolist() for length in (7, 19)]


def _switch(module: Any) -> None:
    """Select our attention and make sure that the model took it: unsupported classes only warn."""
    module.set_attn_implementation(ATTENTION_NAME)
    configs = (module.config, module.config.get_text_config())
    if any(config._attn_implementation != ATTENTION_NAME for config in configs):
        raise ModelError(_NO_INTERFACE)


@torch.inference_mode()
def _alone(module: Any, token_ids: list[int], *, device: torch.device) -> torch.Tensor:
    """Return the logits (2, vocabulary) of the last two positions, by the model's own attention."""
    output = module(input_ids=torch.tensor([token_ids], device=device), use_cache=False, logits_to_keep=2)
    logits: torch.Tensor = output.logits[0, -2:].float()
    return logits


def _probe_cache(probes: list[list[int]], *, dtype: torch.dtype, device: torch.device) -> KVCache:
    num_blocks = sum(num_blocks_for(len(probe), block_size=_BLOCK_SIZE) for probe in probes)
    return KVCache(num_blocks=num_blocks, block_size=_BLOCK_SIZE, dtype=dtype, device=device)


def _packed(runner: ModelRunner, probes: list[list[int]]) -> list[torch.Tensor]:
    """Return the same logits from two packed passes: a part of every sequence, then the rest as if drafted."""
    sequences = []
    num_used = 0
    for token_ids in probes:
        num_blocks = num_blocks_for(len(token_ids), block_size=_BLOCK_SIZE)
        length = len(token_ids)
        sequence = Sequence.start(
            prompt=token_ids,
            max_num_tokens=length,
            context_limit=length,
            sampling=SamplingParams(),
            stop_ids=frozenset(),
            queued=0.0,
        )
        sequence.blocks = list(range(num_used, num_used + num_blocks))
        num_used += num_blocks
        sequences.append(sequence)
    halves = [max(1, length // 2) for length in map(len, probes)]
    bounds = [[(0, half) for half in halves], [(half, len(probe)) for half, probe in zip(halves, probes, strict=True)]]
    for step in bounds:
        chunks = [
            Chunk(
                sequence=sequence,
                start=start,
                token_ids=sequence.tokens[start:end],
                draft=[int(token) for token in sequence.tokens[end - 1 : end]],
                samples=end - start > 1,
            )
            for sequence, (start, end) in zip(sequences, step, strict=True)
        ]
        logits = runner.forward(StepPlan(chunks=chunks)).float()
    return [logits[2 * i : 2 * i + 2] for i in range(len(probes))]


def _compare(expected: list[torch.Tensor], found: list[torch.Tensor], *, tolerance: float) -> None:
    for one, other in zip(expected, found, strict=True):
        if not one.isfinite().all():
            raise _NotFinite
        error = float((one - other).abs().max() / one.abs().max().clamp(min=1e-6))
        if not error <= tolerance:
            raise ModelError(f"packed over pages its logits differ by {error:.1e} of the largest one")
