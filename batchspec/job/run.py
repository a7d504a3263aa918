"""One run: open, or continue, serve every line, and close with a report."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice

from batchspec.api import Engine, Model
from batchspec.errors import DamagedInputError, UsageError
from batchspec.files import (
    FinishedIndices,
    InputSource,
    Journal,
    ResponseParts,
    RunState,
    RunStatus,
    create_journal,
    open_for_resume,
    read_records,
    read_requests,
)
from batchspec.job.account import RunAccount
from batchspec.job.checkpoints import Checkpoints
from batchspec.job.closing import RunTotals, close_run
from batchspec.job.memory import OutputsMemory
from batchspec.job.opening import OpenedJob, check_resolved, open_job
from batchspec.job.outcome import JobOutcome, local_output
from batchspec.job.serve import serve_metrics
from batchspec.job.serving import Serving
from batchspec.job.settings import JobSettings
from batchspec.job.shard import RowsToPassOver, learning_of
from batchspec.job.stopping import how_to_go_on, interrupted, stop_on_signal
from batchspec.job.watch import Silent, Watcher
from batchspec.report import Aggregate
from batchspec.request import Intake

__all__ = ["engine_for", "load_for", "package_versions", "run_job", "serve_job", "serve_with"]


def run_job(settings: JobSettings, *, watcher: Watcher | None = None) -> JobOutcome:
    """Serve every request of the input and leave a run directory behind.

    Args:
        settings: what to do.
        watcher: shown the progress; nobody by default.

    Raises:
        UsageError: the run cannot start, and nothing was written; or a file of it can no longer be written.
    """
    opened = open_job(settings)
    return opened if isinstance(opened, JobOutcome) else serve_job(opened, watcher=watcher or Silent())


def load_for(settings: JobSettings) -> Model:
    """Load the model that a job asks for; ModelError when it cannot be loaded or run."""
    return Model(
        settings.model,
        device=settings.device,
        dtype=settings.dtype,
        generation_config=settings.generation_config,
        model_impl=settings.model_impl,
        trust_remote_code=settings.trust_remote_code,
        allow_pickle=settings.allow_pickle,
    )


def serve_job(opened: OpenedJob, *, watcher: Watcher, model: Model | None = None) -> JobOutcome:
    """Serve what is left of a job that was found fit to run; raises as ``run_job``.

    Args:
        opened: the job.
        watcher: shown the progress.
        model: what ``load_for`` returned; None to load it here.
    """
    return serve_with(engine_for(opened.settings, model or load_for(opened.settings)), opened, watcher=watcher)


def serve_with(engine: Serving, opened: OpenedJob, *, watcher: Watcher) -> JobOutcome:
    """Serve what is left of a job with an engine that was made for its settings; raises as ``run_job``."""
    settings, state = opened.settings, opened.state
    resolved = engine.resolved if settings.shard is None else learning_of(settings.shard, engine.resolved)
    check_resolved(state, resolved)
    unused = engine.resolved["generation_config_unused"]
    if unused:
        watcher.say(f"the model's generation_config.json states {', '.join(unused)}, which batchspec does not use")
    for note in engine.notes:
        watcher.say(note)
    with state, serve_metrics(engine.counters.registry, host=settings.metrics_host, port=settings.metrics_port):
        state.begin(versions=package_versions(), resolved=resolved, engine=engine.dimensions)
        run = _Run(settings=settings, source=opened.source, engine=engine, state=state, watcher=watcher)
        try:
            return run.serve()
        except KeyboardInterrupt as error:
            return interrupted(settings, by=error, num_records=None)
        except UsageError as error:
            raise UsageError(f"{error}; {how_to_go_on(settings)}") from error


@dataclass(kw_only=True)
class _Run:
    """A run that has begun."""

    settings: JobSettings
    source: InputSource
    engine: Serving
    state: RunState
    watcher: Watcher
    aggregate: Aggregate = field(default_factory=Aggregate)
    damage: str | None = None
    account: RunAccount = field(init=False)
    finished: FinishedIndices = field(default_factory=FinishedIndices)
    num_unread: int = 0

    def __post_init__(self) -> None:
        self.account = RunAccount(self.engine)

    def serve(self) -> JobOutcome:
        """Serve what is left to serve, then close."""
        started = time.monotonic()
        with ExitStack() as stack:
            journal = stack.enter_context(self._open_journal())
            memory = stack.enter_context(OutputsMemory(self.engine, self.state, finished=self.finished))
            parts = self._open_parts()
            if parts is not None:
                stack.enter_context(parts)
            checkpoints = Checkpoints(
                journal=journal,
                memory=memory,
                account=self.account,
                source=self.source,
                parts=parts,
                say=self.watcher.say,
                started=started,
            )
            stop = stack.enter_context(stop_on_signal(self.engine, self.watcher))
            shard = self.settings.shard
            self.watcher.begin(
                self.engine.progress,
                self.source,
                num_done=journal.num_records,
                num_shards=1 if shard is None else shard.count,
            )
            try:
                self._serve_lines(journal, checkpoints)
            finally:
                self.watcher.end()
            checkpoints.write()
            num_records = journal.num_records
        if self.engine.is_stopped:
            self.state.save(status="interrupted", counts={"num_records": num_records})
            return interrupted(self.settings, by=stop.signal, num_records=num_records)
        return self._close(checkpoints.elapsed_seconds + self.account.elapsed_seconds)

    def _open_journal(self) -> Journal:
        """Start the journal, or repair it and take up the accounts where its checkpoint left them."""
        path, checkpoint_path = self.state.path("responses.jsonl"), self.state.path("checkpoint.json")
        if self.state.status is RunStatus.FRESH:
            return create_journal(path=path, checkpoint_path=checkpoint_path)
        journal, recovery = open_for_resume(path=path, checkpoint_path=checkpoint_path)
        self.finished, self.num_unread = recovery.finished, recovery.num_records
        if recovery.state is not None:
            self.account.restore(recovery.state)
        else:
            self._read_earlier()
            self.account.forget(self.aggregate.sums())
        self.watcher.say(f"continuing in {self.state.directory} behind {recovery.num_records} finished records")
        return journal

    def _open_parts(self) -> ResponseParts | None:
        """Return what keeps readable copies of the records so far, if the output is a file that is not."""
        if self.settings.output is None:
            return None
        output, journal = local_output(self.state, self.settings.output), self.state.path("responses.jsonl")
        if output.suffix.lower() != ".parquet":
            return None
        return ResponseParts(output, journal=journal, num_bytes=journal.stat().st_size)

    def _serve_lines(self, journal: Journal, checkpoints: Checkpoints) -> None:
        records = self.engine.run(
            self._lines(),
            in_order=self.settings.in_order,
            where=self.source.where,
            between_steps=checkpoints.write_if_due,
        )
        for record in records:
            journal.append(record)
            self.aggregate.add(record)

    def _lines(self) -> Iterator[Intake]:
        """Yield the lines that have no record yet; a damaged input ends them early and is remembered."""
        settings = self.settings
        to_pass_over = RowsToPassOver(settings.shard, self.finished)
        try:
            yield from read_requests(
                self.source,
                columns=settings.columns,
                defaults=self.engine.defaults,
                finished=to_pass_over,
                say=self.watcher.say,
            )
        except DamagedInputError as error:
            self.damage = str(error)

    def _read_earlier(self) -> None:
        """Add up the records of the run that was interrupted; put off as long as nobody asks for the sums."""
        for record in islice(read_records(self.state.path("responses.jsonl")), self.num_unread):
            self.aggregate.add(record)
        self.num_unread = 0

    def _close(self, elapsed_seconds: float) -> JobOutcome:
        """Reconcile, write every report and say how it went."""
        self._read_earlier()
        totals = RunTotals(
            reconciliation=self.account.reconcile(self.aggregate.sums()),
            counters=self.engine.counters.totals(),
            sources=self.engine.sources.totals(),
            exposition=self.engine.counters.exposition(),
            elapsed_seconds=elapsed_seconds,
            damage=self.damage,
        )
        return close_run(
            self.state,
            self.aggregate,
            totals,
            model_name=self.engine.model_name,
            input_path=self.settings.input,
            input_name=self.source.name,
            sha256=self.source.sha256(),
            output=self.settings.output,
        )


def engine_for(settings: JobSettings, model: Model) -> Engine:
    """Return an engine that runs the model as a job asks for; UsageError for settings that do not fit it."""
    engine = settings.engine
    return Engine(
        model,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        max_model_len=engine.max_model_len,
        kv_cache_memory=engine.kv_cache_memory,
        enable_prefix_caching=engine.prefix_caching,
        speculative_config=engine.speculative,
        level=engine.level,
        timing=engine.timing,
        defaults=settings.defaults,
    )


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that a run depends on most."""
    return {name: version(name) for name in ("torch", "transformers", "numba", "pyarrow", "tokenizers")}
