"""One run: open, or continue, serve every line, and close with a report."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice

from batchspec.api import Engine, Model
from batchspec.errors import DamagedInputError
from batchspec.files import (
    FinishedIndices,
    InputSource,
    Journal,
    RunState,
    RunStatus,
    create_journal,
    open_for_resume,
    read_records,
    read_requests,
)
from batchspec.job.account import RunAccount
from batchspec.job.memory import OutputsMemory
from batchspec.job.opening import OpenedJob, check_resolved, open_job
from batchspec.job.outcome import ExitStatus, JobOutcome, write_output, write_reports
from batchspec.job.serve import serve_metrics
from batchspec.job.settings import JobSettings
from batchspec.job.stopping import stop_on_signal
from batchspec.job.watch import Silent, Watcher
from batchspec.report import Aggregate, report_document, throughput_document
from batchspec.request import Intake

__all__ = ["load_for", "package_versions", "run_job", "serve_job"]

_SECONDS_BETWEEN_CHECKPOINTS = 1.0


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
    )


def serve_job(opened: OpenedJob, *, watcher: Watcher, model: Model | None = None) -> JobOutcome:
    """Serve what is left of a job that was found fit to run; raises as ``run_job``.

    Args:
        opened: the job.
        watcher: shown the progress.
        model: what ``load_for`` returned; None to load it here.
    """
    settings, state = opened.settings, opened.state
    engine = _engine(settings, model or load_for(settings))
    check_resolved(state, engine.resolved)
    unused = engine.resolved["generation_config_unused"]
    if unused:
        watcher.say(f"the model's generation_config.json states {', '.join(unused)}, which batchspec does not use")
    for note in engine.notes:
        watcher.say(note)
    with state, serve_metrics(engine.counters.registry, host=settings.metrics_host, port=settings.metrics_port):
        state.begin(versions=package_versions(), resolved=engine.resolved, engine=engine.dimensions)
        return _Run(settings=settings, source=opened.source, engine=engine, state=state, watcher=watcher).serve()


@dataclass(kw_only=True)
class _Run:
    """A run that has begun."""

    settings: JobSettings
    source: InputSource
    engine: Engine
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
            stack.enter_context(stop_on_signal(self.engine, self.watcher))
            self.watcher.begin(self.engine.progress, self.source, num_done=journal.num_records)
            try:
                self._serve_lines(journal, memory, started)
            finally:
                self.watcher.end()
            elapsed = time.monotonic() - started
            memory.sync()
            journal.checkpoint(self.account.state(elapsed_seconds=elapsed))
            num_records = journal.num_records
        if self.engine.is_stopped:
            self.state.save(status="interrupted", counts={"num_records": num_records})
            return _interrupted(num_records)
        return self._close(elapsed + self.account.elapsed_seconds)

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

    def _serve_lines(self, journal: Journal, memory: OutputsMemory, started: float) -> None:
        checked = started
        where = f"{self.source.name} {self.source.unit}"
        for record in self.engine.run(self._lines(), in_order=self.settings.in_order, where=where):
            journal.append(record)
            self.aggregate.add(record)
            now = time.monotonic()
            if now - checked >= _SECONDS_BETWEEN_CHECKPOINTS:
                memory.sync()
                journal.checkpoint(self.account.state(elapsed_seconds=now - started))
                checked = now

    def _lines(self) -> Iterator[Intake]:
        """Yield the lines that have no record yet; a damaged input ends them early and is remembered."""
        settings = self.settings
        try:
            yield from read_requests(
                self.source, columns=settings.columns, defaults=self.engine.defaults, finished=self.finished
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
        document = self.aggregate.document()
        tokens = document["tokens"]
        is_known = not tokens["num_requests_without_usage"]
        reconciliation = self.account.reconcile(self.aggregate.sums())
        report = report_document(
            document,
            reconciliation=None if reconciliation is None else reconciliation.document(),
            totals=self.engine.counters.totals(),
            sources=self.engine.sources.totals(),
            run={
                "model": self.engine.model_name,
                "input": self.settings.input,
                **self.settings.parameters(),
                "resolved": self.state.manifest["resolved"],
            },
            throughput=throughput_document(
                num_prompt_tokens=tokens["prompt_tokens"] if is_known else None,
                num_output_tokens=tokens["completion_tokens"] if is_known else None,
                elapsed_seconds=elapsed_seconds,
            ),
        )
        write_reports(self.state, report=report, exposition=self.engine.counters.exposition())
        if self.settings.output is not None:
            write_output(self.state, self.settings.output)
        is_exact = reconciliation is None or reconciliation.is_exact
        num_failed = document["requests"]["num_failed"]
        status = ExitStatus.FAILURES if num_failed or not is_exact or self.damage else ExitStatus.DONE
        self.state.save(
            status="interrupted" if self.damage else "finished",
            counts=document["requests"],
            dataset=self.state.manifest["dataset"] | {"sha256": self.source.sha256()},
            exit_status=int(status),
        )
        return JobOutcome(status=status, report=report, sentences=self._sentences(num_failed, is_exact=is_exact))

    def _sentences(self, num_failed: int, *, is_exact: bool) -> tuple[str, ...]:
        sentences = [] if self.damage is None else [self.damage]
        if not self.aggregate.document()["requests"]["num_requests"]:
            sentences.append(f"{self.source.name} holds no requests")
        if num_failed:
            lines = "line has" if num_failed == 1 else "lines have"
            sentences.append(f"{num_failed} {lines} an error record: look for a non-null error in the responses")
        if not is_exact:
            sentences.append("the per-request sums and the Prometheus counters differ: do not trust these numbers")
        return (*sentences, f"responses, counters and reports are in {self.state.directory}")


def _engine(settings: JobSettings, model: Model) -> Engine:
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


def _interrupted(num_records: int) -> JobOutcome:
    sentence = f"interrupted behind {num_records} records: run the same command again to continue"
    return JobOutcome(status=ExitStatus.INTERRUPTED, report=None, sentences=(sentence,))
