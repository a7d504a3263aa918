"""What two run directories of the same job must have in common, whoever served it."""

import json
from pathlib import Path
from typing import Any

from batchspec.acceptance import Level
from batchspec.job.settings import JobSettings
from batchspec.settings import EngineSettings

__all__ = ["MIXED_ROWS", "assert_same_run", "document", "records_of", "settings_for"]

_TEXT = "List the days of the week twice: Monday, Tuesday, Wednesday, Thursday, Friday. Monday, Tuesday,"

# Every kind of line: several samples, a conversation, a line that is no JSON, an id that was used, a prompt too long.
MIXED_ROWS: list[Any] = [
    *({"custom_id": f"{i}", "prompt": f"{_TEXT} {i}", "max_tokens": 10 + i % 5, "temperature": 0.8} for i in range(9)),
    {"custom_id": "samples", "prompt": _TEXT, "n": 2, "max_tokens": 12, "temperature": 0.9, "ignore_eos": True},
    "{not json",
    {"custom_id": "4", "prompt": "an id from another shard"},
    {"question_id": 70, "category": "chat", "turns": ["Say hello.", "Say it again."], "max_tokens": 12},
    {"custom_id": "long", "prompt": "word " * 4000},
    {"prompt": f"{_TEXT} and no id", "max_tokens": 9, "temperature": 0.7, "category": "bare"},
    {"custom_id": "last", "prompt": _TEXT, "max_tokens": 20, "temperature": 0, "category": "bare"},
]
_DEPEND_ON_THE_BATCH = {"vllm:prefix_cache_hits_total", "vllm:num_preemptions_total"}


def settings_for(directory: Path, run_dir: Path) -> JobSettings:
    """Return the job that all serve; see ``on_cluster``."""
    engine = EngineSettings(max_num_seqs=8, level=Level.DETAILED)
    return JobSettings(input=str(directory / "input.jsonl"), run_dir=run_dir, device="cpu", engine=engine)


def document(run_dir: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_dir / name).read_text())
    return found


def records_of(run_dir: Path) -> list[str]:
    """Return the records as text, without the second at which each was made."""
    records = [json.loads(line) for line in (run_dir / "responses.jsonl").read_text().splitlines()]
    for record in records:
        record["response"]["body"].pop("created", None)
    return [json.dumps(record) for record in records]


def counters_of(run_dir: Path) -> dict[str, float]:
    """Return every counter, and how much went into every histogram, without times and what hangs on the batch."""
    lines = [line for line in (run_dir / "metrics.prom").read_text().splitlines() if line[0] != "#"]
    series = dict(line.rsplit(" ", 1) for line in lines)
    wanted = ("_total", "_count", "_tokens_sum", "_tokens_bucket")
    names = {key: key.partition("{")[0] for key in series}
    kept = [key for key, name in names.items() if name.endswith(wanted) and name not in _DEPEND_ON_THE_BATCH]
    return {key: float(series[key]) for key in kept}


def assert_same_run(found: Path, single: Path, *, redone: bool = False) -> None:
    """Compare responses, counters, report and manifest; with ``redone``, counters hold work that was done twice."""
    assert records_of(found) == records_of(single)
    reports = [document(run_dir, "report.json") for run_dir in (found, single)]
    manifests = [document(run_dir, "manifest.json") for run_dir in (found, single)]
    for report in reports:
        assert report["reconciliation"]["is_exact"]
        del report["throughput"]
        if redone:
            del report["counters"], report["reconciliation"], report["sources"]
    assert reports[0] == reports[1]
    for name in ("status", "batchspec_version", "versions", "parameters", "model", "resolved", "dataset", "counts"):
        assert manifests[0][name] == manifests[1][name], name
    assert manifests[0]["exit_status"] == manifests[1]["exit_status"]
    if not redone:
        assert counters_of(found) == counters_of(single)
