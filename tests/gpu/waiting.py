"""How often the host waits for the device in a step."""

import warnings

import torch

from batchspec.engine import EngineCore

from .answers import answers_of
from .finding import Finding
from .stage import Stage
from .texts import SETTINGS

__all__ = ["check_waiting"]


def check_waiting(stage: Stage) -> Finding:
    """Once a step, for what the target chose: greedy and seeded, with prefill, drafts and decodes."""
    core = stage.engine(stage.load("float32"), SETTINGS)
    lines, values, is_right = [], {}, True
    for name, temperature in {"greedy": 0.0, "seeded": 0.9}.items():
        answers_of(core, stage.requests(temperature=temperature))  # records what is to be recorded
        before = core.progress.num_steps
        num_waits = _count_waits(core, stage, temperature)
        num_steps = core.progress.num_steps - before
        values[name] = {"waits": num_waits, "steps": num_steps}
        lines.append(f"{name}: the host waited {num_waits} times in {num_steps} steps")
        is_right &= stage.is_rehearsal or num_waits == num_steps
    return Finding(is_right=is_right, lines=tuple(lines), values=values)


def _count_waits(core: EngineCore, stage: Stage, temperature: float) -> int:
    """Return how often torch says that it waits while requests are served; none on the CPU."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not stage.is_rehearsal:
            torch.cuda.set_sync_debug_mode("warn")
        try:
            answers_of(core, stage.requests(temperature=temperature))
        finally:
            if not stage.is_rehearsal:
                torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(warning.message) for warning in caught)
