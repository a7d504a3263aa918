"""What a step costs outside the model, station by station."""

import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from batchspec.bench.interruption import Interruption
from batchspec.bench.job import Job
from batchspec.bench.laps import FORWARD, Laps, watch
from batchspec.bench.spread import alternate, spread
from batchspec.bench.subject import Subject
from batchspec.files import create_journal

__all__ = ["measure_overhead"]


def measure_overhead(
    subject: Subject, job: Job, *, rounds: int, say: Callable[[str], None], interruption: Interruption | None = None
) -> dict[str, Any]:
    """Run a job with and without speculation, and its records into a journal; return the share of every station."""
    modes = {"none": False}
    if subject.settings.speculative.method != "none":
        modes[subject.settings.speculative.method] = True
    contestants = {name: partial(_run, subject, job, is_speculating=flag) for name, flag in modes.items()}
    alternate(
        {name: partial(_run, subject, job.shortened(4), is_speculating=flag) for name, flag in modes.items()}, rounds=1
    )
    measured = alternate(
        contestants,
        rounds=rounds,
        on_round=lambda number: say(f"overhead at {job.max_num_seqs} sequences, round {number} of {rounds}"),
        interruption=interruption,
    )
    return {"max_num_seqs": job.max_num_seqs, "modes": {name: _document(runs) for name, runs in measured.items()}}


def _run(subject: Subject, job: Job, *, is_speculating: bool) -> dict[str, float]:
    """Return the seconds by station, and the number of steps as ``num_steps``."""
    core = subject.engine_for(job, is_speculating=is_speculating)
    gc.collect()
    with TemporaryDirectory() as directory:
        path = Path(directory)
        with create_journal(path=path / "responses.jsonl", checkpoint_path=path / "checkpoint.json") as journal:
            laps = Laps()
            watch(core, laps, device=subject.loaded.device)
            for record in core.run(job.requests()):
                laps.lap("records")
                journal.append(record)
                laps.lap("write")
            laps.lap("records")
            journal.checkpoint({})
            laps.lap("write")
    return dict(laps.seconds) | {"num_steps": core.progress.num_steps}


def _document(runs: list[dict[str, float]]) -> dict[str, Any]:
    totals = [sum(seconds for name, seconds in run.items() if name != "num_steps") for run in runs]
    stations = dict.fromkeys(name for run in runs for name in run if name != "num_steps")
    return {
        "num_steps": int(runs[0]["num_steps"]),
        "step_seconds": vars(spread([total / run["num_steps"] for run, total in zip(runs, totals, strict=True)])),
        "outside_share": vars(spread([1 - run[FORWARD] / total for run, total in zip(runs, totals, strict=True)])),
        "seconds_by_station": {
            name: vars(spread([run.get(name, 0.0) / run["num_steps"] for run in runs])) for name in stations
        },
    }
