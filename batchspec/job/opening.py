"""Whether a job can start, continue, or has ended; asked before anything heavy is imported or anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.errors import ModelError, UsageError
from batchspec.files import (
    InputSource,
    RunState,
    RunStatus,
    check_destination,
    check_unchanged,
    checkpoint_state,
    open_run,
    open_source,
)
from batchspec.files.resume import check_whole
from batchspec.job.outcome import ExitStatus, JobOutcome, read_report, write_output
from batchspec.job.settings import JobSettings
from batchspec.model.locate import EMBEDDED_DRAFT, EMBEDDED_TARGET, fingerprint, locate

__all__ = ["OpenedJob", "check_resolved", "identify_model", "open_job"]


@dataclass(frozen=True, kw_only=True)
class OpenedJob:
    """A job that was found fit to run.

    Attributes:
        settings: what to do.
        source: the input.
        state: the run directory.
    """

    settings: JobSettings
    source: InputSource
    state: RunState


def identify_model(model: str | None) -> dict[str, Any]:
    """Return what the manifest says of a model: name, path and fingerprint; ModelError when there is no such model."""
    found = locate(model or EMBEDDED_TARGET)
    return {
        "name": found.name,
        "path": model or "embedded",
        "fingerprint": fingerprint(found.files) if found.files else None,
    }


def _identify_draft(settings: JobSettings) -> dict[str, Any]:
    """Return the draft model's fingerprint for the manifest, if there is one; ModelError if it cannot be found."""
    config = settings.engine.speculative
    if config.model is None and config.method != "draft_model":
        return {}
    try:
        found = locate(config.model or EMBEDDED_DRAFT)
    except ModelError as error:
        raise ModelError(f"--draft-{str(error).removeprefix('--')}") from error
    return {"draft_fingerprint": fingerprint(found.files) if found.files else None}


def open_job(settings: JobSettings, *, model: Mapping[str, Any] | None = None) -> OpenedJob | JobOutcome:
    """Check everything that can be checked without the model; nothing is written.

    Args:
        settings: what to do.
        model: what ``identify_model`` returned; None to look for the model here.

    Returns:
        The job to serve, or how an earlier run of the same job ended.

    Raises:
        UsageError: the run cannot start.
    """
    settings.check()
    source = open_source(settings.input)
    if settings.output is not None:
        check_destination(settings.output, inputs=[part.path for part in source.parts])
    state = open_run(
        settings.run_dir,
        parameters=settings.parameters(),
        model={**(identify_model(settings.model) if model is None else model), **_identify_draft(settings)},
        dataset=source.dataset(),
        overwrite=settings.overwrite,
    )
    if state.status is RunStatus.FINISHED:
        return _finished(state, settings)
    if state.status is RunStatus.RESUME:
        check_unchanged(source, checkpoint_state(state.path("checkpoint.json")).get("input", ()))
    return OpenedJob(settings=settings, source=source, state=state)


def check_resolved(state: RunState, resolved: Mapping[str, Any]) -> None:
    """Raise UsageError if an interrupted run would continue on another device, dtype or commit than it began with."""
    before = state.manifest.get("resolved", resolved) if state.status is RunStatus.RESUME else resolved
    changes = [f"{name} was {before.get(name)}, now {now}" for name, now in resolved.items() if before.get(name) != now]
    if changes:
        raise UsageError(
            f"{state.directory} holds a run that began otherwise: {'; '.join(changes)}; "
            "use --overwrite or another --run-dir"
        )


def _finished(state: RunState, settings: JobSettings) -> JobOutcome:
    if not state.path("responses.jsonl").is_file():
        raise UsageError(f"the run in {state.directory} is finished, but its responses are gone: use --overwrite")
    check_whole(state.path("responses.jsonl"), num_records=state.manifest["counts"].get("num_requests"))
    sentence = f"the run in {state.directory} is finished, nothing was done: use --overwrite to run it again"
    if settings.output is not None:
        write_output(state, settings.output)
        sentence = f"the run in {state.directory} is finished; its responses were written to {settings.output}"
    status = ExitStatus(state.manifest.get("exit_status", 0))
    return JobOutcome(status=status, report=read_report(state), sentences=(sentence,))
