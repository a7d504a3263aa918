"""A real Ray cluster on this machine: two workers in processes of their own, one of them killed, and Ray Data."""

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.job.run import run_job
from tests.cli.calling import call
from tests.scaleout.comparing import MIXED_ROWS, assert_same_run, document, records_of, settings_for

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'batchspec[ray]'"
)

ROOT = Path(__file__).parent.parent.parent
ROWS = [
    # Long ones first, so that each worker has one open for long when it is lost.
    *({"prompt": f"1, 2, 3, 1, 2, 3, {i}, 1, 2, 3,", "max_tokens": 250, "ignore_eos": True} for i in range(4)),
    *MIXED_ROWS,
    *({"prompt": f"Count: 1, 2, 3, 4, {i},", "max_tokens": 40, "temperature": 0.5 * (i % 3)} for i in range(24)),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the jobs of ``on_cluster`` were served, beside ``single``, the run in one process."""
    directory = tmp_path_factory.mktemp("served")
    lines = [row if isinstance(row, str) else orjson.dumps(row).decode() for row in ROWS]
    (directory / "input.jsonl").write_text("".join(f"{line}\n" for line in lines))
    command = [sys.executable, "-m", "tests.scaleout.on_cluster", str(directory)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "300"}  # the computer may be busy
    with (directory / "out.json").open("wb") as out, (directory / "err.txt").open("wb") as err:
        ended = subprocess.run(
            command, stdout=out, stderr=err, check=False, cwd=ROOT, env=environment, timeout=900
        ).returncode
    assert ended == 0, (directory / "err.txt").read_text()[-4000:]

    run_job(settings_for(directory, directory / "single"))
    return directory


def test_a_cluster_that_nobody_answers_for_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"prompt": "a"}\n')
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{unheard.getsockname()[1]}")
        status, out, err = call(monkeypatch, capsys, "run", "in.jsonl", "--ray")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.search(
        r"the Ray cluster at RAY_ADDRESS=127.0.0.1:\d+ cannot be reached .*: check it with ray status", err
    )
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_two_workers_leave_the_run_directory_of_one_process(served: Path) -> None:
    assert_same_run(served / "ray", served / "single")
    assert (served / "status").read_text() == "1", "three lines cannot be served"
    assert document(served, "out.json") == document(served / "ray", "report.json"), "nothing else goes to stdout"
    said = (served / "err.txt").read_text()
    assert "worker 1 is ready: process" in said
    assert "worker 2 is ready: process" in said


def test_a_killed_worker_loses_no_record_and_doubles_none(served: Path) -> None:
    said = json.loads((served / "said.json").read_text())
    assert any("was lost" in text and "requests are served again" in text for text in said)
    assert_same_run(served / "killed", served / "single", redone=True)
    reconciliation = document(served / "killed", "report.json")["reconciliation"]
    assert reconciliation["is_exact"]
    steps = reconciliation["rows"][0]
    assert steps["unreported"]["worker lost"] > 0


def test_a_stage_of_ray_data_makes_the_same_records_and_counts(served: Path) -> None:
    pipeline = document(served, "pipeline.json")
    found: dict[int, Any] = {row["index"]: row["record"] for row in pipeline["rows"]}
    assert len(pipeline["rows"]) == len(ROWS)
    assert sorted(found) == list(range(len(ROWS)))
    single = document(served / "single", "report.json")
    assert pipeline["report"]["reconciliation"]["is_exact"]
    for index, record in enumerate(map(orjson.loads, records_of(served / "single"))):
        if record["custom_id"] != "4":  # the stage does not know of ids in other blocks
            found[index]["response"]["body"].pop("created", None)
            message = found[index]["error"] and found[index]["error"]["message"]
            assert found[index]["response"]["status_code"] == record["response"]["status_code"], message
            assert found[index]["response"]["body"].get("choices") == record["response"]["body"].get("choices")
            assert found[index]["response"]["body"].get("metrics") == record["response"]["body"].get("metrics")
    assert pipeline["report"]["counters"]["num_spec_steps"] >= single["counters"]["num_spec_steps"]
