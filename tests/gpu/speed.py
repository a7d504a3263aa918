"""Tokens per second of a model of a billion parameters, beside what the memory allows and beside transformers."""

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from batchspec.bench.clock import repeated, seconds_of
from batchspec.bench.job import Job, serve
from batchspec.bench.made_up import make_plan
from batchspec.bench.shapes import kv_bytes, weight_bytes
from batchspec.engine import EngineCore
from batchspec.model.load import LoadedModel
from batchspec.verify import judge

from .finding import Finding
from .large import large_model, module_of
from .stage import Stage
from .texts import WITHOUT

__all__ = ["measure_speed"]


def measure_speed(stage: Stage) -> Finding:
    """Measure greedy generation without drafts: recorded, computed step by step, and by transformers' generate."""
    bytes_per_second = _bandwidth(stage)
    loaded = large_model(stage)
    notes: list[str] = []
    lines = [f"memory is copied at {bytes_per_second / 1e9:,.0f} GB/s, weights are {weight_bytes(loaded) / 1e9:.2f} GB"]
    values: dict[str, Any] = {"bytes_per_second": bytes_per_second, "weight_bytes": weight_bytes(loaded)}
    try:
        for size in stage.batch_sizes:
            values[str(size)] = _measure(stage, loaded, size, bytes_per_second=bytes_per_second, note=notes.append)
            lines.append(f"{size} sequences: {_sentence(values[str(size)])}")
    except TimeoutError:
        lines.append("no time for the rest")
    values["notes"] = sorted(set(notes))
    is_right = all(str(size) in values for size in stage.batch_sizes)
    return Finding(is_right=is_right, lines=(*lines, *values["notes"]), values=values)


def _measure(
    stage: Stage, loaded: LoadedModel, size: int, *, bytes_per_second: float, note: Callable[[str], None]
) -> dict[str, float]:
    """Return tokens per second by way, and milliseconds of a step's parts, for so many sequences."""
    job = _job(stage, size)
    context = stage.num_prompt_tokens + stage.num_new_tokens // 2
    floor = (weight_bytes(loaded) + size * kv_bytes(loaded, context=context)) / bytes_per_second
    found = _ours(stage, loaded, job, note=note)
    return found | {"floor_ms": 1e3 * floor, "floor": size / floor, "transformers": _transformers(stage, loaded, job)}


def _sentence(found: dict[str, float]) -> str:
    return (
        f"recorded {found['recorded']:,.0f} tokens/s ({found['recorded'] / found['floor']:.0%} of the floor of "
        f"{found['floor']:,.0f}), computed {found['computed']:,.0f}, transformers {found['transformers']:,.0f}; "
        f"a step's forward pass takes {found['forward_ms']:.2f} ms, choosing {found['judge_ms']:.2f} ms, "
        f"its floor is {found['floor_ms']:.2f} ms"
    )


def _bandwidth(stage: Stage) -> float:
    """Return bytes per second, read and written, of copying memory on the device."""
    source = torch.zeros(stage.num_copied, dtype=torch.uint8, device=stage.device)
    target = torch.zeros_like(source)
    target.copy_(source)
    seconds = repeated(lambda: seconds_of(lambda: target.copy_(source), device=stage.device))
    return 2 * stage.num_copied / seconds


def _job(stage: Stage, size: int) -> Job:
    random = np.random.default_rng(size)
    prompts = random.integers(1, 255, size=(size, stage.num_prompt_tokens)).tolist()
    return Job(prompts=prompts, max_tokens=stage.num_new_tokens, max_num_seqs=size)


def _ours(stage: Stage, loaded: LoadedModel, job: Job, *, note: Callable[[str], None]) -> dict[str, float]:
    """Return tokens per second with and without recordings, and milliseconds of a step's parts."""
    settings = replace(
        WITHOUT, max_num_seqs=job.max_num_seqs, max_num_batched_tokens=2048, max_model_len=job.longest + 1
    )
    found = {}
    for name, is_recorded in (("computed", False), ("recorded", True)):
        core = stage.engine(loaded, settings, is_recorded=is_recorded, note=note)
        serve(core, job)  # records every step that will come up
        found[name] = len(job.prompts) * job.max_tokens / serve(core, job).seconds
        if is_recorded:
            found |= _step_times(stage, core, job)
        del core
        gc.collect()
    return found


def _step_times(stage: Stage, core: EngineCore, job: Job) -> dict[str, float]:
    """Return milliseconds of a decode step in the middle of the job, and of choosing its tokens."""
    context = stage.num_prompt_tokens + stage.num_new_tokens // 2
    plan = make_plan(core, job.prompts[0], rows=job.max_num_seqs, context=context, width=1)
    core.runner.forward(plan)
    forward = repeated(lambda: seconds_of(lambda: core.runner.forward(plan), device=stage.device))
    logits = core.runner.forward(plan)
    judging = repeated(lambda: seconds_of(lambda: judge(plan, logits), device=stage.device))
    return {"forward_ms": 1e3 * forward, "judge_ms": 1e3 * judging}


@torch.inference_mode()
def _transformers(stage: Stage, loaded: LoadedModel, job: Job) -> float:
    """Return tokens per second of transformers' generate with its own attention, on the same weights."""
    module = module_of(loaded)
    ours = module.config._attn_implementation
    module.set_attn_implementation("sdpa")
    ids = torch.tensor(job.prompts, device=stage.device)

    def generate(num_tokens: int) -> None:
        module.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=num_tokens,
            min_new_tokens=num_tokens,
            do_sample=False,
            pad_token_id=0,
        )

    generate(2)
    seconds = seconds_of(lambda: generate(job.max_tokens), device=stage.device)
    module.set_attn_implementation(ours)
    return len(job.prompts) * job.max_tokens / seconds
