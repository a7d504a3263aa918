"""What a user waits for and pays for: the time from the command to the first token, and the most memory it takes."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from batchspec.bench.job import Job
from batchspec.bench.settings import BenchSettings
from batchspec.bench.shapes import weight_bytes
from batchspec.bench.spread import alternate, spread
from batchspec.bench.subject import Subject
from batchspec.blocks import num_blocks_for
from batchspec.errors import UsageError

__all__ = ["measure_memory", "measure_start"]

_PAUSE = 0.002  # seconds between two looks at the records
_PEAK = Path(__file__).with_name("peak.py")


def measure_start(subject: Subject, settings: BenchSettings, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Time ``batchspec run`` from the command to the first record of one token, and the way there step by step.

    Raises:
        UsageError: the command fails.
    """
    prompt = subject.prompts.token_ids[0]
    with TemporaryDirectory() as directory:
        row = {"prompt": prompt, "max_tokens": 1, "temperature": 0}
        input_path = Path(directory) / "one.jsonl"
        input_path.write_text(json.dumps(row) + "\n")
        command = [*_command(settings), str(input_path), "--run-dir", f"{directory}/run", "--overwrite"]
        records = Path(directory) / "run" / "responses.jsonl"
        measured = alternate(
            {"command": lambda: _first_record(command, records), "steps": lambda: _steps(settings, row)},
            rounds=settings.rounds,
            on_round=lambda number: say(f"first token of the command, round {number} of {settings.rounds}"),
        )
    steps = measured["steps"]
    return {
        "prompt_tokens": len(prompt),
        "first_record_seconds": vars(spread([found["first_record"] for found in measured["command"]])),
        "steps_seconds": {name: vars(spread([found[name] for found in steps])) for name in steps[0]},
    }


def measure_memory(subject: Subject, settings: BenchSettings, job: Job) -> dict[str, Any]:
    """Run ``batchspec run`` on a job with a cache just large enough for it; return the peak beside what must be there.

    Raises:
        UsageError: the command fails.
    """
    longest = subject.room_for(job)
    num_blocks = job.max_num_seqs * num_blocks_for(longest, block_size=subject.block_size)
    kv_bytes = num_blocks * subject.block_size * subject.loaded.bytes_per_token
    with TemporaryDirectory() as directory:
        input_path, report = Path(directory) / "job.jsonl", Path(directory) / "peak.json"
        body = {"max_tokens": job.max_tokens, "temperature": 0, "ignore_eos": True}
        input_path.write_text("".join(json.dumps({"prompt": prompt} | body) + "\n" for prompt in job.prompts))
        command = [*_command(settings), str(input_path), "--run-dir", f"{directory}/run"]
        command += ["--max-num-seqs", str(job.max_num_seqs), "--max-model-len", str(longest)]
        command += ["--kv-cache-memory", str(kv_bytes)]
        _finish(subprocess.Popen([sys.executable, str(_PEAK), str(report), *command], **_PIPES))
        peak_bytes = json.loads(report.read_text())["peak_bytes"]
    weights = weight_bytes(subject.loaded)
    return {
        "max_num_seqs": job.max_num_seqs,
        "peak_bytes": peak_bytes,
        "weight_bytes": weights,
        "kv_cache_bytes": kv_bytes,
        "other_bytes": peak_bytes - weights - kv_bytes,
    }


_PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def _command(settings: BenchSettings) -> list[str]:
    model = [] if settings.model is None else ["--model", settings.model]
    config = json.dumps(settings.engine.speculative.document())
    flags = ["--dtype", settings.dtype, "--device", settings.device]
    flags += ["--model-impl", settings.model_impl, "--speculative-config", config]
    return [sys.executable, "-m", "batchspec", "run", *model, *flags]


def _first_record(command: list[str], records: Path) -> dict[str, float]:
    """Return the seconds until the command's first record stands in its file; its end is waited for."""
    records.unlink(missing_ok=True)
    started = time.monotonic()
    process = subprocess.Popen(command, **_PIPES)
    found = None
    while found is None and process.poll() is None:
        if records.exists() and records.stat().st_size:
            found = time.monotonic() - started
        time.sleep(_PAUSE)
    elapsed = time.monotonic() - started
    _finish(process)
    return {"first_record": elapsed if found is None else found}


def _steps(settings: BenchSettings, row: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of every step to the first token, from the start of the process on."""
    engine = {
        "model": settings.model,
        "device": settings.device,
        "dtype": settings.dtype,
        "model_impl": settings.model_impl,
        "speculative_config": settings.engine.speculative.document(),
    }
    started = time.monotonic()
    arguments = [sys.executable, "-m", "batchspec.bench.first_token", json.dumps(engine), json.dumps(row)]
    marks: dict[str, float] = json.loads(_finish(subprocess.Popen(arguments, **_PIPES)))
    readings = [started, *marks.values()]
    return {name: end - begin for name, begin, end in zip(marks, readings, readings[1:], strict=False)}


def _finish(process: "subprocess.Popen[str]") -> str:
    """Wait for a process and return what it printed; UsageError with its last words if it failed."""
    out, err = process.communicate()
    if process.returncode:
        lines = err.strip().splitlines() or ["no message"]
        raise UsageError(f"a command of the benchmark ended with exit status {process.returncode}: {lines[-1]}")
    return out
