"""Jobs on a real Ray cluster of two cores; run as a program, since Ray leaves processes to the end of its own.

``python -m tests.scaleout.on_cluster DIRECTORY`` serves ``DIRECTORY/input.jsonl`` with two workers, then with two of
which one is killed, then as a pipeline of Ray Data, and writes down what was said.
"""

import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ray

from batchspec.api import Progress
from batchspec.cli import main
from batchspec.files import InputSource
from batchspec.job.opening import OpenedJob, open_job
from batchspec.scaleout import BatchSpecStage, StageTally, on_ray, read_lines
from batchspec.scaleout.crew import Crew
from batchspec.scaleout.on_ray import RaySettings, serve_on_ray
from tests.scaleout.comparing import settings_for

__all__ = ["Executioner"]


class Executioner:
    """Watches a run, and kills a worker by its own process id.

    The one that was ready first, once ``at`` rows are done and it has told of steps for rows that are not.
    """

    def __init__(self, *, at: int):
        self.at = at
        self.said: list[str] = []
        self.crews: list[Crew] = []

    def watch(self, *args: Any, **kwargs: Any) -> Crew:
        """Return a crew that is watched."""
        self.crews.append(Crew(*args, **kwargs))
        return self.crews[-1]

    def say(self, text: str) -> None:
        self.said.append(text)

    def begin(self, progress: Progress, source: InputSource, *, num_done: int, num_shards: int = 1) -> None:
        threading.Thread(target=self._kill, args=(progress,), daemon=True).start()

    def _kill(self, progress: Progress) -> None:
        while progress.num_done < self.at:
            time.sleep(0.001)
        words = next(text for text in self.said if "is ready: process" in text).split()
        member = self.crews[0]._members[int(words[1])]
        while not member.in_flight().num_spec_steps:
            time.sleep(0.001)
        os.kill(int(words[words.index("process") + 1]), signal.SIGKILL)

    def end(self) -> None:
        pass


def serve_from_the_command_line(directory: Path) -> None:
    flags = ["--level", "detailed", "--device", "cpu", "--max-num-seqs", "8", "--json", "--ray", "--num-workers", "2"]
    sys.argv = ["batchspec", "run", str(directory / "input.jsonl"), "--run-dir", str(directory / "ray"), *flags]
    try:
        main()
    except SystemExit as ended:
        (directory / "status").write_text(str(ended.code))


def serve_and_kill(directory: Path) -> None:
    opened = open_job(settings_for(directory, directory / "killed"))
    assert isinstance(opened, OpenedJob)
    watcher = Executioner(at=4)
    with patch.object(on_ray, "Crew", watcher.watch):
        serve_on_ray(opened, RaySettings(num_workers=2), watcher=watcher)
    (directory / "said.json").write_text(json.dumps(watcher.said))


def serve_as_a_pipeline(directory: Path) -> None:
    served = read_lines(str(directory / "input.jsonl"), lines_per_block=10).map_batches(
        BatchSpecStage,
        fn_constructor_kwargs={"level": "detailed", "device": "cpu", "max_num_seqs": 8},
        batch_size=5,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=1, max_tasks_in_flight_per_actor=2),
        max_concurrency=2,
    )
    tally, rows = StageTally(), []
    for row in served.iter_rows():
        tally.add(row)
        rows.append({"index": row["index"], "record": json.loads(row["record"])})
    document: dict[str, Any] = {"rows": rows, "report": tally.report()}
    (directory / "pipeline.json").write_text(json.dumps(document))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    serve_from_the_command_line(place)
    serve_and_kill(place)
    serve_as_a_pipeline(place)
    ray.shutdown()
