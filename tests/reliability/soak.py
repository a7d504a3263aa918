"""Hundreds of thousands of short requests on a table model, as a whole job: ``make soak``.

Parameters, stops and errors are drawn at random, pages are scarce, forward passes fail, memory runs out now and then,
and the job is interrupted and continued once. At the end every record must be there and valid, no page, file or memory
may be lost, and both accounts must agree.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from batchspec.acceptance import Level
from batchspec.api import Model
from batchspec.drafting import SpeculativeConfig, make_drafter
from batchspec.drafting.means import Means
from batchspec.engine import EngineCore
from batchspec.job.opening import OpenedJob, open_job
from batchspec.job.outcome import JobOutcome
from batchspec.job.run import serve_job
from batchspec.job.settings import JobSettings
from batchspec.job.watch import Silent
from batchspec.launch import Launched
from batchspec.model.generation import GenerationDefaults
from batchspec.sequence import Sequence
from batchspec.settings import EngineSettings
from batchspec.step import StepPlan
from batchspec.testing import TableModel, make_engine
from tests.reliability.soak_rows import faults_of_record, soak_row

__all__ = ["Soak", "main"]

_CONTEXT, _BLOCK, _SEQS = 64, 4, 32
_POISON = 7  # behind this byte the table has no numbers, so that a sequence that comes there fails


@dataclass(kw_only=True)
class Reading:
    """What the process held at one time: requests done, resident bytes and open files."""

    num_done: int
    resident: int
    num_files: int


@dataclass(kw_only=True)
class Soak:
    """A job of so many requests.

    Attributes:
        directory: where input and run directory are.
        number: of requests.
        seed: of everything that is drawn.
        readings: what was held meanwhile.
        faults: what was wrong.
    """

    directory: Path
    number: int
    seed: int
    readings: list[Reading] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    facts: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """Write the input, serve it with an interruption, and check everything."""
        dice, num_files = random.Random(self.seed), _num_files()
        path = self.directory / "in.jsonl"
        with path.open("w") as file:
            file.writelines(f"{soak_row(index, dice)}\n" for index in range(self.number))
        outcome = self._serve(path, stop_at=int(0.4 * self.number))
        if outcome.status != 130:
            self.faults.append(f"the interrupted part ended with {outcome.status}")
        outcome = self._serve(path, stop_at=None)
        if outcome.status != 1 or outcome.report is None:
            self.faults.append(f"the job ended with {outcome.status}: {outcome.sentences}")
            return
        self.facts["differences"] = outcome.report["reconciliation"]["num_differences"]
        self._check_records(path)
        self.facts["files leaked"] = _num_files() - num_files
        self._check_readings()

    def _serve(self, path: Path, *, stop_at: int | None) -> JobOutcome:
        settings = JobSettings(
            input=str(path),
            run_dir=self.directory / "run",
            engine=EngineSettings(
                max_num_seqs=_SEQS,
                max_num_batched_tokens=256,
                level=Level.SUMMARY,
                speculative=SpeculativeConfig.from_mapping({"method": "suffix", "num_speculative_tokens": 4}),
            ),
        )
        opened = open_job(settings, model={"name": "table", "path": "table", "fingerprint": None})
        assert isinstance(opened, OpenedJob)
        held = Tables(self, stop_at=stop_at)
        outcome = serve_job(opened, watcher=Silent(), model=held)
        pool, running = held.core.scheduler.pool, held.core.scheduler.running
        pool.check([sequence.blocks for sequence in running])
        if stop_at is None:
            self.facts["pages leaked"] += pool.num_blocks - pool.num_free
        self.facts["preemptions"] += held.core.scheduler.num_preemptions
        self.facts["steps"] += held.core.progress.num_steps
        return outcome

    def _check_records(self, path: Path) -> None:
        with path.open() as rows, (self.directory / "run/responses.jsonl").open() as records:
            num_records = 0
            for index, (row, line) in enumerate(zip(rows, records, strict=False)):
                record = json.loads(line)
                self.faults += faults_of_record(record, row, index=index)
                error = record["error"]
                self.facts["served" if error is None else f"error {error['code']}"] += 1
                num_records += 1
            self.facts["records lost"] = self.number - num_records
            self.facts["records doubled"] = sum(1 for _ in records)

    def _check_readings(self) -> None:
        settled = self.readings[len(self.readings) // 4 :]
        most_files, files = max(one.num_files for one in self.readings), self.readings[0].num_files
        if most_files > files + 1:  # the table of used ids moves into a file when it is large
            self.faults.append(f"{most_files} files open, {files} at first")
        self.facts["MiB grown behind the first quarter"] = (settled[-1].resident - settled[0].resident) >> 20
        self.facts["peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        for fact in ("pages leaked", "records lost", "records doubled", "files leaked", "differences"):
            if self.facts[fact]:
                self.faults.append(f"{fact}: {self.facts[fact]}")

    def read(self, num_done: int) -> None:
        """Note what the process holds now."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.readings.append(
            Reading(
                num_done=num_done,
                resident=pages * os.sysconf("SC_PAGE_SIZE"),
                num_files=_num_files(),
            )
        )


class Tables(Model):
    """Stands for a model that was loaded: an engine over a table, whose forward passes fail now and then."""

    def __init__(self, soak: Soak, *, stop_at: int | None):
        self.soak = soak
        self.stop_at = stop_at

    @property
    def resolved(self) -> dict[str, Any]:
        """Nothing had to be found out."""
        return {"dtype": "float32", "device": "cpu", "model_impl": "table", "model_fingerprint": None}

    def launch(self, settings: EngineSettings) -> Launched:
        """Return the engine; pages are so few that sequences are put back again and again."""
        table = TableModel.random(seed=1, scale=1.5)
        table.table[_POISON] = torch.nan
        drafter = make_drafter(settings.speculative, Means(max_num_seqs=_SEQS, answers=_no_answers))
        self.core = make_engine(
            model=Failing(table, random.Random(self.soak.seed)),
            drafter=drafter,
            level=settings.level,
            max_num_seqs=settings.max_num_seqs,
            max_num_batched_tokens=settings.max_num_batched_tokens,
            max_model_len=_CONTEXT,
            num_blocks=3 * _CONTEXT // _BLOCK,
            block_size=_BLOCK,
            prefix_caching=True,
        )
        self._watch(self.core)
        return Launched(
            core=self.core,
            dimensions={"max_model_len": _CONTEXT, "num_blocks": self.core.scheduler.pool.num_blocks},
            resolved=self.resolved,
            notes=[],
            generation_defaults=GenerationDefaults(values={}, unused=()),
        )

    def _watch(self, core: EngineCore) -> None:
        """Check the pages and read what is held, every so many steps; interrupt the job where that is wanted."""
        step, every = core.step, max(200, self.soak.number // 100)

        def watched() -> list[Sequence]:
            progress = core.progress
            if progress.num_steps % 100 == 0:
                core.scheduler.pool.check([sequence.blocks for sequence in core.scheduler.running])
            if progress.num_steps % every == 0:
                self.soak.read(progress.num_done)
            if self.stop_at is not None and progress.num_done >= self.stop_at:
                self.stop_at = None
                signal.raise_signal(signal.SIGINT)
            return step()

        core.step = watched  # type: ignore[method-assign]


class Failing:
    """A table model whose passes raise at random: once in 400 steps for good, once in 100 for want of memory."""

    def __init__(self, inner: TableModel, dice: random.Random):
        self._inner = inner
        self._dice = dice

    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the table's logits, or raise."""
        number = self._dice.random()
        if number < 1 / 400:
            raise RuntimeError("boom")
        if number < 1 / 80 and plan.num_tokens > 1:
            raise MemoryError
        self._inner.num_rows.clear()
        return self._inner.forward(plan)


def _num_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def _no_answers(path: str) -> Any:
    raise NotImplementedError(path)


def _lines(soak: Soak, *, seconds: float) -> Iterator[str]:
    document = {
        "requests": soak.number,
        "faults": soak.faults[:20],
        **dict(sorted(soak.facts.items())),
        "resident MiB by requests done": {str(one.num_done): one.resident >> 20 for one in soak.readings[::10]},
        "minutes": round(seconds / 60, 1),
    }
    yield json.dumps(document, indent=2)


def main() -> int:
    """Run the job and print what was found as JSON; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000, help="Requests in all.")
    parser.add_argument("--seed", type=int, default=0, help="Of everything that is drawn.")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="soak-"))
    torch.set_num_threads(1)
    started = time.monotonic()
    soak = Soak(directory=directory, number=options.requests, seed=options.seed)
    soak.run()
    print(*_lines(soak, seconds=time.monotonic() - started), sep="\n")
    if not soak.faults:
        shutil.rmtree(directory)
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
