"""The parts of the check, each with a limit on its time, and the document that they make."""

import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import transformers

from .finding import Finding
from .kernels import check_kernels
from .speed import measure_speed
from .stage import Stage
from .texts import check_against_cpu, check_recordings, check_speculation
from .waiting import check_waiting

__all__ = ["PARTS", "Part", "run_parts"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the check.

    Attributes:
        name: what it is about.
        limit: seconds that it may take.
        run: does it.
    """

    name: str
    limit: int
    run: Callable[[Stage], Finding]


PARTS = (
    Part(name="attention", limit=20, run=check_kernels),
    Part(name="texts of the CPU", limit=50, run=check_against_cpu),
    Part(name="recordings", limit=30, run=check_recordings),
    Part(name="speculation", limit=30, run=check_speculation),
    Part(name="waiting", limit=20, run=check_waiting),
    Part(name="speed", limit=80, run=measure_speed),
)


def run_parts(stage: Stage, parts: tuple[Part, ...] = PARTS) -> dict[str, Any]:
    """Run all parts, telling on standard error what each found; return the document."""
    found = {part.name: _run(part, stage) for part in parts}
    return {
        "device": torch.cuda.get_device_name() if stage.device.type == "cuda" else platform.processor() or "cpu",
        "is_rehearsal": stage.is_rehearsal,
        "versions": {"torch": torch.__version__, "cuda": torch.version.cuda, "transformers": transformers.__version__},
        "is_right": all(part["is_right"] for part in found.values()),
        "parts": found,
    }


def _run(part: Part, stage: Stage) -> dict[str, Any]:
    started = time.perf_counter()
    signal.signal(signal.SIGALRM, _time_is_up)
    signal.alarm(part.limit)
    try:
        finding = part.run(stage)
    except Exception as error:
        traceback.print_exc()
        finding = Finding(is_right=False, lines=(f"{type(error).__name__}: {error}",))
    finally:
        signal.alarm(0)
    seconds = time.perf_counter() - started
    print(f"{part.name}: {'right' if finding.is_right else 'WRONG'} ({seconds:.1f} s)", file=sys.stderr)
    for line in finding.lines:
        print(f"    {line}", file=sys.stderr, flush=True)
    return {
        "is_right": finding.is_right,
        "seconds": seconds,
        "lines": list(finding.lines),
        "values": dict(finding.values),
    }


def _time_is_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("the part took longer than it may")
