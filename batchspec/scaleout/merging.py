"""Shards put together: one run directory, as a single run would have left it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from batchspec.errors import UsageError
from batchspec.files import RunState, RunStatus, create_journal, open_run
from batchspec.files.resume import check_whole
from batchspec.job.closing import RunTotals, close_run
from batchspec.job.outcome import ExitStatus, JobOutcome, read_report
from batchspec.report import Aggregate
from batchspec.scaleout.accounts import MergedAccount, num_positions
from batchspec.scaleout.shards import ShardRun, check_together, find_shards
from batchspec.scaleout.sorting import records_in_order

__all__ = ["MergeSettings", "merge_shards"]


@dataclass(frozen=True, kw_only=True)
class MergeSettings:
    """What to merge, and where to.

    Attributes:
        directories: run directories of shards, or directories that hold them.
        run_dir: of the merged run; None for the directory that holds all shards under their usual names.
        overwrite: replace whatever run that directory holds.
    """

    directories: Sequence[Path]
    run_dir: Path | None = None
    overwrite: bool = False


def merge_shards(settings: MergeSettings) -> JobOutcome:
    """Merge the shards of an input; nothing is written before they are known to belong together.

    Raises:
        UsageError: a shard is missing, unfinished, damaged, twice there, of another input or served otherwise; or the
            run directory cannot be used.
    """
    runs = find_shards(settings.directories)
    check_together(runs)
    directory = settings.run_dir or _common_directory(runs)
    for run in runs:
        if directory.resolve() == run.directory.resolve():
            raise UsageError(f"{directory} holds shard {run.shard}: choose another --run-dir for the merged run")
    state = _open(runs[0], directory, overwrite=settings.overwrite)
    if state.status is RunStatus.FINISHED:
        check_whole(state.path("responses.jsonl"), num_records=state.manifest["counts"].get("num_requests"))
        sentence = f"the run in {directory} is finished, nothing was done: use --overwrite to merge again"
        status = ExitStatus(state.manifest.get("exit_status", 0))
        return JobOutcome(status=status, report=read_report(state), sentences=(sentence,))
    with state:
        return _write(runs, state)


def _common_directory(runs: Sequence[ShardRun]) -> Path:
    parents = {run.directory.parent for run in runs}
    if len(parents) > 1 or any(run.directory.name != run.shard.directory for run in runs):
        raise UsageError("the shards do not stand in one directory under their usual names: choose a --run-dir")
    return parents.pop()


def _open(run: ShardRun, directory: Path, *, overwrite: bool) -> RunState:
    """Return the run directory: fresh, or finished; a merge that was interrupted begins anew."""
    manifest = run.manifest
    wanted = {
        "parameters": {name: value for name, value in manifest["parameters"].items() if name != "shard"},
        "model": manifest["model"],
        "dataset": {name: value for name, value in manifest["dataset"].items() if name != "sha256"},
    }
    state = open_run(directory, **wanted, overwrite=overwrite)
    if state.status is RunStatus.RESUME:
        if "merged_from" not in state.manifest:
            raise UsageError(
                f"{directory} holds a run of the whole input that was interrupted: use --overwrite or another --run-dir"
            )
        state = open_run(directory, **wanted, overwrite=True)
    return state


def _write(runs: Sequence[ShardRun], state: RunState) -> JobOutcome:
    first = runs[0]
    account = MergedAccount(
        model_name=first.manifest["model"]["name"], num_spec_tokens=num_positions(first.state["counters"])
    )
    for run in runs:
        account.add(run.state)
        account.counters.show_histograms(str(run.shard), run.exposition)
    aggregate = Aggregate()
    records = records_in_order(runs)
    record = next(records, None)
    state.begin(
        versions=first.manifest["versions"],
        resolved=first.manifest["resolved"],
        engine=first.manifest["engine"],
        merged_from=[_origin(run) for run in runs],
    )
    elapsed = max(run.state["elapsed_seconds"] for run in runs)
    checkpoint = account.state(elapsed_seconds=elapsed)
    path, checkpoint_path = state.path("responses.jsonl"), state.path("checkpoint.json")
    with create_journal(path=path, checkpoint_path=checkpoint_path) as journal:
        while record is not None:
            journal.append(record)
            aggregate.add(record)
            record = next(records, None)
        journal.checkpoint(checkpoint)
    has_records = first.manifest["parameters"]["level"] != "none"
    totals = RunTotals(
        reconciliation=account.reconcile(aggregate.sums()) if has_records else None,
        counters=account.counters.totals(),
        sources=account.sources.totals(),
        exposition=account.counters.exposition(),
        elapsed_seconds=elapsed,
    )
    input_path = first.manifest["dataset"]["path"]
    outcome = close_run(
        state,
        aggregate,
        totals,
        model_name=first.manifest["model"]["name"],
        input_path=input_path,
        input_name=input_path,
        sha256=first.manifest["dataset"]["sha256"],
    )
    return JobOutcome(
        status=outcome.status, report=outcome.report, sentences=(*_remarks(runs, elapsed), *outcome.sentences)
    )


def _origin(run: ShardRun) -> dict[str, object]:
    return {
        "shard": str(run.shard),
        "directory": str(run.directory),
        "num_records": run.num_records,
        "elapsed_seconds": run.state["elapsed_seconds"],
    }


def _remarks(runs: Sequence[ShardRun], elapsed: float) -> list[str]:
    """Return what the merged numbers do not say of themselves."""
    together = sum(run.state["elapsed_seconds"] for run in runs)
    remarks = [f"elapsed is the longest shard's time, {elapsed:.1f} s; all {len(runs)} together took {together:.1f} s"]
    versions = {name: {run.manifest["versions"].get(name) for run in runs} for name in runs[0].manifest["versions"]}
    remarks += [f"the shards ran with several versions of {name}" for name, seen in versions.items() if len(seen) > 1]
    return remarks
