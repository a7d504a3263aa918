"""Kills a small job before every n-th of its file operations, from the first to the last: a part of ``make crash``.

Where ``crash`` meets the places of a write by chance, this meets them one after another, checkpoints behind every step.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from batchspec.model.load import load_model
from tests.reliability.command import arguments
from tests.reliability.judging import faults_behind_a_crash, faults_of_a_finished_run, records_of, without_time
from tests.reliability.operations import Fork
from tests.reliability.workload import SHAPES, Shape, write_input

__all__ = ["main"]


def main() -> int:
    """Kill and continue; print what was found as JSON; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stride", type=int, default=17, help="File operations between two kill points.")
    parser.add_argument("--rows", type=int, default=24, help="Requests of the job.")
    options = parser.parse_args()
    started, fork, found = time.monotonic(), Fork(load_model(device="cpu")), {}
    faults: list[str] = []
    for shape in SHAPES:
        with tempfile.TemporaryDirectory(prefix="operations-") as directory:
            found[shape.name] = _kill_all(fork, shape, Path(directory), options.rows, options.stride, faults)
            print(f"{shape.name}: {found[shape.name]}, {len(faults)} faults", file=sys.stderr)
    document = {
        "kill_points": sum(one["kill_points"] for one in found.values()),
        "faults": faults,
        "by_shape": found,
        "minutes": round((time.monotonic() - started) / 60, 1),
    }
    print(json.dumps(document, indent=2))
    return 1 if faults else 0


def _kill_all(fork: Fork, shape: Shape, place: Path, number: int, stride: int, faults: list[str]) -> dict[str, int]:
    """Kill at every ``stride``-th operation; return how many operations and kill points there were."""
    path, run_dir = write_input(place / "in.jsonl", number=number), place / "run"
    output = place / f"answers{shape.suffix}" if shape.suffix else None
    args = arguments(path, run_dir, shape.flags, output)
    num_operations = fork.num_operations(args)
    whole = without_time(records_of(run_dir))
    num_points = 0
    for before in range(1, num_operations + 1, stride):
        shutil.rmtree(run_dir)
        if output is not None:
            output.unlink(missing_ok=True)
        num_points += fork.run(args, before=before).status < 0
        found = faults_behind_a_crash(run_dir, output, whole)
        ended = fork.run(args)
        found += [] if ended.status == 1 else [f"continued, it ended with {ended.status}: {ended.last_line}"]
        found += faults_of_a_finished_run(run_dir, output, whole)
        faults += [f"{shape.name}, operation {before}: {fault}" for fault in found]
    return {"file_operations": num_operations, "kill_points": num_points}


if __name__ == "__main__":
    sys.exit(main())
