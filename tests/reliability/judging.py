"""Whether what a run left behind is whole: every record once, equal to those of an undisturbed run, accounts exact."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from batchspec.files import read_responses

__all__ = ["faults_behind_a_crash", "faults_of_a_finished_run", "records_of", "without_time"]


def records_of(run_dir: Path) -> list[dict[str, Any]]:
    """Return the records of a finished run, as they are."""
    return [json.loads(line) for line in (run_dir / "responses.jsonl").read_bytes().splitlines()]


def without_time(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records in the order of the input without the second in which they were made.

    Of the metrics only the token ids stay: where pages are short, drafts are cut and sequences put back by what else
    runs just then, so that steps fall otherwise, while the tokens are the same. So do the chunks of a stream.
    """
    kept = []
    for record in records:
        bodies = record["response"]["body"]
        for body in bodies if isinstance(bodies, list) else [bodies]:
            body.pop("created", None)
            if body.get("metrics"):
                sequences = body["metrics"]["batchspec"]["sequences"]
                body["metrics"] = [(one["prompt_token_ids"], one["token_ids"]) for one in sequences]
        if isinstance(bodies, list):
            record["response"]["body"] = _told_in_one(bodies)
        kept.append(record)
    return sorted(kept, key=lambda record: str(record["id"]))


def _told_in_one(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the chunks of a stream say together."""
    texts: dict[int, str] = {}
    ends = []
    for chunk in chunks:
        for choice in chunk["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
            ends += [(choice["index"], choice["finish_reason"])] if choice["finish_reason"] else []
    return {"texts": texts, "ends": ends, "usage": chunks[-1].get("usage"), "metrics": chunks[-1].get("metrics")}


def faults_behind_a_crash(run_dir: Path, output: Path | None, whole: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with what a crash left: whole lines must be true records, each once, Parquet readable.

    Args:
        run_dir: of the run that crashed.
        output: what it was to write at its end.
        whole: the records of the undisturbed run, as ``without_time`` returns them.
    """
    faults = []
    journal = run_dir / "responses.jsonl"
    if journal.exists():
        lines = journal.read_bytes().split(b"\n")[:-1]
        faults += _faults_of_records("the journal", [json.loads(line) for line in lines], whole)
    for name in ("manifest.json", "checkpoint.json", "report.json"):
        if (run_dir / name).exists():
            json.loads((run_dir / name).read_bytes())
    if output is not None and output.exists():
        found = list(read_responses(output)) if output.suffix == ".parquet" else _lines(output)
        if without_time(found) != whole:
            faults.append("the output is there and not whole")
    if output is not None:
        faults += _faults_of_records("the parts", _parts(output), whole)
    return faults


def faults_of_a_finished_run(run_dir: Path, output: Path | None, whole: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with a run that came to its end: records lost, doubled or changed, accounts that differ."""
    faults = []
    records = records_of(run_dir)
    ids = [record["id"] for record in records]
    lost, num_doubled = {record["id"] for record in whole} - set(ids), len(ids) - len(set(ids))
    if lost or num_doubled:
        faults.append(f"{len(lost)} records lost, {num_doubled} doubled")
    if without_time(records) != whole:
        faults.append("the records are not those of the undisturbed run")
    reconciliation = json.loads((run_dir / "report.json").read_bytes())["reconciliation"]
    if reconciliation["num_differences"]:
        faults.append(f"{reconciliation['num_differences']} totals differ")
    if json.loads((run_dir / "manifest.json").read_bytes())["status"] != "finished":
        faults.append("the manifest does not say that the run is finished")
    if output is not None:
        found = list(read_responses(output)) if output.suffix == ".parquet" else _lines(output)
        if without_time(found) != whole:
            faults.append("the output does not hold the records")
        if output.with_name(f"{output.name}.parts").exists():
            faults.append("parts are left beside the output")
    torn = [path.name for path in (*run_dir.iterdir(), *run_dir.parent.iterdir()) if path.name.endswith(".tmp")]
    return faults + [f"{name} is left behind" for name in torn]


def _faults_of_records(what: str, found: list[dict[str, Any]], whole: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with some of the records: each must be one of the whole, and none may come twice."""
    expected = {record["id"]: record for record in whole}
    faults = []
    if len({record["id"] for record in found}) != len(found):
        faults.append(f"{what} holds a record twice")
    if any(expected.get(record["id"]) != record for record in without_time(found)):
        faults.append(f"{what} holds a record that the undisturbed run does not have")
    return faults


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def _parts(output: Path) -> list[dict[str, Any]]:
    """Return the records in the parts of an output, read as anybody would read a directory of Parquet files."""
    directory = output.with_name(f"{output.name}.parts")
    if not directory.is_dir() or not any(path.name.startswith("part-") for path in directory.iterdir()):
        return []
    num_rows = pq.read_table(directory).num_rows
    records = [record for path in sorted(directory.glob("part-*.parquet")) for record in read_responses(path)]
    assert num_rows == len(records)
    return records
