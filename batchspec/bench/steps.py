"""The cost table: what a step takes over the rows of its forward pass and the context of its sequences."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from batchspec.bench.clock import repeated, seconds_of
from batchspec.bench.made_up import filling_plans, make_plan
from batchspec.bench.matmul import MatmulPass
from batchspec.bench.settings import BenchSettings
from batchspec.bench.shapes import kv_bytes, linear_shapes
from batchspec.bench.spread import alternate, ratios, spread
from batchspec.bench.subject import Subject
from batchspec.blocks import num_blocks_for
from batchspec.engine import EngineCore
from batchspec.errors import UsageError
from batchspec.step import StepPlan
from batchspec.verify import judge

__all__ = ["measure_steps"]

_MOST_KV_BYTES = 2**28  # far more than a cache holds; larger passes share blocks

Timed = tuple[float, float]
"""Seconds of the forward pass, and of choosing and comparing tokens."""


def measure_steps(
    subject: Subject, settings: BenchSettings, *, bytes_per_second: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Time steps of every size beside the floor of their size, round by round.

    Args:
        subject: the model.
        settings: sizes and rounds.
        bytes_per_second: at which keys and values can be read at best.
        say: told what is being measured.

    Raises:
        UsageError: a context is longer than the model's.
    """
    core = _engine(subject, settings)
    for plan in filling_plans(core, subject.tokens, context=max(settings.contexts)):
        core.runner.forward(plan)
    cells: list[dict[str, Any]] = []
    shapes = linear_shapes(subject.loaded)
    ways = {}
    for rows in settings.rows:
        say(f"steps of {rows} rows")
        matmuls = MatmulPass(shapes, rows=rows, dtype=subject.dtype, device=subject.loaded.device)
        ways[str(rows)] = matmuls.ways
        cells += _cells_of(core, subject, settings, rows=rows, matmuls=matmuls, bytes_per_second=bytes_per_second)
    return {"cells": cells, "matmuls": ways}


def _engine(subject: Subject, settings: BenchSettings) -> EngineCore:
    """Return an engine with room for the largest pass, or for as much of it as is worth having."""
    longest = max(settings.contexts) + 1 + settings.engine.speculative.num_speculative_tokens
    if longest > subject.loaded.context_length:
        raise UsageError(
            f"--context {max(settings.contexts)} leaves no room for drafts in the model's context of "
            f"{subject.loaded.context_length} tokens: give less."
        )
    per_block = subject.loaded.bytes_per_token * subject.block_size
    num_blocks = num_blocks_for(longest, block_size=subject.block_size)
    most = min(_MOST_KV_BYTES // per_block, max(settings.rows) * num_blocks)
    return subject.engine(max_model_len=longest, kv_cache_memory=max(most, num_blocks) * per_block)


def _cells_of(
    core: EngineCore,
    subject: Subject,
    settings: BenchSettings,
    *,
    rows: int,
    matmuls: MatmulPass,
    bytes_per_second: float,
) -> Iterator[dict[str, Any]]:
    """Yield the table's cells for passes of that many rows."""
    widths = sorted({1, min(rows, 1 + settings.engine.speculative.num_speculative_tokens)})
    sizes = [(context, width) for context in settings.contexts for width in widths]
    plans = {size: make_plan(core, subject.tokens, rows=rows, context=size[0], width=size[1]) for size in sizes}
    timers: dict[str, Callable[[], Timed]] = {
        str(size): partial(_time_step, core, subject, plan) for size, plan in plans.items()
    }
    alternate(timers, rounds=1)
    timers["matmuls"] = lambda: (matmuls.seconds(), 0.0)
    measured = alternate(timers, rounds=settings.rounds)
    products = [seconds for seconds, _ in measured["matmuls"]]
    for (context, width), plan in plans.items():
        timed = measured[str((context, width))]
        kv_seconds = len(plan.chunks) * kv_bytes(subject.loaded, context=context) / bytes_per_second
        yield {
            "rows": rows,
            "rows_per_sequence": width,
            "num_sequences": len(plan.chunks),
            "context": context,
            "forward_seconds": vars(spread([forward for forward, _ in timed])),
            "judge_seconds": vars(spread([judging for _, judging in timed])),
            "matmul_seconds": vars(spread(products)),
            "kv_seconds": kv_seconds,
            "over_floor": vars(ratios([sum(pair) for pair in timed], [seconds + kv_seconds for seconds in products])),
        }


def _time_step(core: EngineCore, subject: Subject, plan: StepPlan) -> Timed:
    device = subject.loaded.device
    forward = repeated(lambda: seconds_of(lambda: core.runner.forward(plan), device=device))
    logits = core.runner.forward(plan)
    return forward, repeated(lambda: seconds_of(lambda: judge(plan, logits), device=device))
