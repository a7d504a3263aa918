"""Engines whose steps go the way of a device, on the CPU."""

from collections.abc import Callable
from typing import Any

import torch

from batchspec.engine import EngineCore
from batchspec.files import Columns, RowDefaults
from batchspec.files.rows import parse_row
from batchspec.launch import build_engine
from batchspec.model.cache import KVCache
from batchspec.model.device.buckets import Buckets
from batchspec.model.device.capture import Capture
from batchspec.model.device.steps import DeviceSteps
from batchspec.model.load import LoadedModel
from batchspec.model.runner import ModelRunner
from batchspec.settings import EngineSettings

from .generating import CPU


class Rerun:
    """Instead of recording a function, calls it again, and puts what it returns where the first result is.

    Args:
        failing: which recordings fail, counted from 0.
    """

    def __init__(self, *, failing: range = range(0)):
        self.failing = failing
        self.num_recorded = 0

    def __call__(self, function: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        self.num_recorded += 1
        if self.num_recorded - 1 in self.failing:
            raise RuntimeError("operation not permitted when stream is capturing.\nmore about it")
        result = function()

        def replay() -> torch.Tensor:
            return result.copy_(function())

        return replay


def engine_on_device(
    loaded: LoadedModel,
    settings: EngineSettings,
    *,
    capture: Capture | None = None,
    note: Callable[[str], None] = print,
    has_full_tables: bool = False,
) -> EngineCore:
    """Return an engine for a model on the CPU whose runner works as on a device.

    Args:
        loaded: run by transformers.
        settings: of the engine.
        capture: how steps are recorded; None for not at all.
        note: told why they are not.
        has_full_tables: as in ``Buckets``.
    """
    core = build_engine(loaded, settings)
    pool = core.scheduler.pool
    cache = KVCache(
        num_blocks=pool.num_blocks, block_size=pool.block_size, dtype=torch.float32, device=CPU, in_strips=False
    )
    runner = ModelRunner(network=loaded.network, cache=cache, device=CPU)
    core.runner = runner
    if capture is not None:
        steps_of(core).record(
            Buckets(
                most_sequences=settings.max_num_seqs,
                most_drafted=core.drafter.num_spec_tokens,
                most_tokens=settings.max_num_batched_tokens,
                most_blocks=-(-core.desk.limits.max_model_len // pool.block_size),
                has_full_tables=has_full_tables,
            ),
            capture=capture,
            note=note,
        )
    return core


def steps_of(core: EngineCore) -> DeviceSteps:
    """Return what runs an engine's steps."""
    assert isinstance(core.runner, ModelRunner)
    assert core.runner.on_device is not None
    return core.runner.on_device


def texts_of(core: EngineCore, bodies: list[dict[str, Any]]) -> list[str]:
    """Return what an engine answers to rows."""
    rows = (
        parse_row(body, index=index, line=index + 1, columns=Columns(), defaults=RowDefaults())
        for index, body in enumerate(bodies)
    )
    records = list(core.run(rows))
    assert [record["error"] for record in records] == [None] * len(bodies)
    choices = [record["response"]["body"]["choices"][0] for record in records]
    return [choice["message"]["content"] if "message" in choice else choice["text"] for choice in choices]
