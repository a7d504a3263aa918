"""What is said between the benchmark and an engine in a process of its own."""

import sys
from pathlib import Path

import pytest

from batchspec.bench.job import Job
from batchspec.bench.peer_names import WORKERS
from batchspec.bench.peers.worker import Worker
from batchspec.errors import UsageError

JOB = Job(prompts=[[1, 2], [3]], max_tokens=5, max_num_seqs=2)
ENGINE = """
import json, sys
settings = json.loads(sys.argv[1])
print("loading", file=sys.stderr)
if settings.get("fails"):
    sys.exit("no such model")
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    if settings.get("dies"):
        sys.exit("out of memory")
    if settings.get("babbles"):
        print("warming up", flush=True)
    elif settings.get("refuses"):
        print(json.dumps({"error": "the prompt is too long"}), flush=True)
    else:
        num_tokens = job["max_tokens"] * len(job["prompts"])
        print(json.dumps({"seconds": job["num_running"] / 4, "output_tokens": num_tokens}), flush=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "engine.py"
    path.write_text(ENGINE)
    return path


def test_jobs_are_answered_one_after_another(script: Path) -> None:
    with Worker("fake", python=sys.executable, script=script, settings={}) as worker:
        for max_num_seqs in (2, 8):
            measured = worker.run(Job(prompts=JOB.prompts, max_tokens=5, max_num_seqs=max_num_seqs))
            assert (measured.seconds, measured.output_tokens, measured.cpu_seconds) == (max_num_seqs / 4, 10, None)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("dies", "the peer fake ended without an answer: out of memory"),
        ("babbles", "the peer fake answered b'warming up.*which is not JSON"),
        ("refuses", "the peer fake failed: the prompt is too long"),
    ],
)
def test_a_fault_is_a_sentence(script: Path, fault: str, sentence: str) -> None:
    with (
        Worker("fake", python=sys.executable, script=script, settings={fault: True}) as worker,
        pytest.raises(UsageError, match=sentence),
    ):
        worker.run(JOB)


def test_an_engine_that_does_not_load_is_a_sentence(script: Path) -> None:
    with pytest.raises(UsageError, match="the peer fake ended without an answer: no such model"):
        Worker("fake", python=sys.executable, script=script, settings={"fails": True})


def test_an_interpreter_that_does_not_run_is_a_sentence(script: Path) -> None:
    with pytest.raises(UsageError, match="cannot be run"):
        Worker("fake", python=str(script.parent), script=script, settings={})


@pytest.mark.parametrize("name", ["openvino", "vllm"])
def test_an_environment_without_the_engine_is_a_sentence(name: str) -> None:
    settings = {"model": "m", "dtype": "float32", "num_threads": 1, "num_spec_tokens": 0, "kv_cache_gigabytes": 1}
    with pytest.raises(UsageError, match=f"the peer {name} ended without an answer: ModuleNotFoundError"):
        Worker(name, python=sys.executable, script=WORKERS[name], settings=settings)
