"""Kills the installed command at seeded points of its whole life and continues it, again and again: ``make crash``.

After every kill the files are read, then the same command runs to its end; its records must be those of a run that
nothing disturbed, each once, and both accounts must agree. Some runs are killed several times before that.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.reliability.command import arguments, run, run_and_signal
from tests.reliability.judging import faults_behind_a_crash, faults_of_a_finished_run, records_of, without_time
from tests.reliability.workload import SHAPES, Shape, write_input

__all__ = ["Trials", "main"]

_MOST_KILLS = 3


@dataclass(kw_only=True)
class Trials:
    """Kills of one job, run in one shape.

    Attributes:
        shape: how the job is run.
        directory: everything is written below it.
        num_kills: processes killed so far.
        kept: records that were found in the journal behind each kill.
        faults: what was wrong.
        num_preemptions: of the undisturbed run.
    """

    shape: Shape
    directory: Path
    num_kills: int = 0
    kept: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    num_preemptions: int = 0
    life: float = 0.0
    whole: list[dict[str, Any]] = field(default_factory=list)

    def undisturbed(self) -> None:
        """Run the job once without a kill, and note its records and how long it computes."""
        args, run_dir, output = self._job("whole")
        ended = run_and_signal(args, behind=float("inf"))
        if ended.status != 1:  # as some lines are wrong
            raise RuntimeError(f"the undisturbed run ended with {ended.status}: {ended.stderr}")
        self.life = ended.processor
        self.whole = without_time(records_of(run_dir))
        self.faults += faults_of_a_finished_run(run_dir, output, self.whole)
        prefix = "vllm:num_preemptions_total"
        lines = (run_dir / "metrics.prom").read_text().splitlines()
        self.num_preemptions = sum(int(float(line.split()[-1])) for line in lines if line.startswith(prefix))

    def trial(self, name: str, dice: random.Random) -> int:
        """Kill a run at one to three points of its life, then let it end; return how often it was killed."""
        args, run_dir, output = self._job(name)
        num_kills = 0
        for _ in range(dice.choice([1, 1, 1, 2, _MOST_KILLS])):
            ended = run_and_signal(args, behind=dice.uniform(0.0, 1.02 * self.life))
            if ended.status >= 0:
                break
            num_kills += 1
            self.faults += [f"{name}: {fault}" for fault in faults_behind_a_crash(run_dir, output, self.whole)]
            journal = run_dir / "responses.jsonl"
            self.kept.append(journal.read_bytes().count(b"\n") if journal.exists() else 0)
        ended = run(args)
        if ended.status != 1 or "Traceback" in ended.stderr:
            self.faults.append(f"{name}: continued, it ended with {ended.status}: {ended.last_line}")
        self.faults += [f"{name}: {fault}" for fault in faults_of_a_finished_run(run_dir, output, self.whole)]
        self.num_kills += num_kills
        if not self.faults:
            shutil.rmtree(run_dir.parent)
        return num_kills

    def _job(self, name: str) -> tuple[list[str], Path, Path | None]:
        place = self.directory / name
        place.mkdir(parents=True, exist_ok=True)
        output = place / f"answers{self.shape.suffix}" if self.shape.suffix else None
        run_dir = place / "run"
        return arguments(self.directory / "in.jsonl", run_dir, self.shape.flags, output), run_dir, output


def main() -> int:
    """Try kill points until there were enough; print what was found as JSON; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=120, help="Kills in all.")
    parser.add_argument("--seed", type=int, default=0, help="Of the points.")
    parser.add_argument("--keep", action="store_true", help="Keep what the runs wrote.")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="crash-"))
    started, dice = time.monotonic(), random.Random(options.seed)
    all_trials = []
    for number, shape in enumerate(SHAPES):
        place = directory / str(number)
        place.mkdir()
        write_input(place / "in.jsonl", seed=options.seed)
        trials = Trials(shape=shape, directory=place)
        trials.undisturbed()
        all_trials.append(trials)
        ordinal = 0
        while trials.num_kills < options.points / len(SHAPES) and ordinal < 3 * options.points:
            trials.trial(f"trial-{ordinal}", dice)
            ordinal += 1
            print(f"{shape.name}: {trials.num_kills} kills, {len(trials.faults)} faults", file=sys.stderr)
    print(json.dumps(_summary(all_trials, seconds=time.monotonic() - started), indent=2))
    faults = [fault for trials in all_trials for fault in trials.faults]
    if not options.keep and not faults:
        shutil.rmtree(directory)
    return 1 if faults else 0


def _summary(all_trials: list[Trials], *, seconds: float) -> dict[str, Any]:
    kept = Counter(min(9, 10 * count // len(trials.whole)) for trials in all_trials for count in trials.kept)
    return {
        "kill_points": sum(trials.num_kills for trials in all_trials),
        "faults": [fault for trials in all_trials for fault in trials.faults],
        "by_shape": {trials.shape.name: trials.num_kills for trials in all_trials},
        "preemptions_of_the_undisturbed_run": {trials.shape.name: trials.num_preemptions for trials in all_trials},
        "seconds_of_processor_of_the_undisturbed_run": {trials.shape.name: trials.life for trials in all_trials},
        "kills_by_tenths_of_the_records_in_the_journal": [kept[tenth] for tenth in range(10)],
        "kills_before_the_first_record": sum(not count for trials in all_trials for count in trials.kept),
        "kills_behind_the_last_record": sum(len(t.whole) == count for t in all_trials for count in t.kept),
        "minutes": round(seconds / 60, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
